public import AssentCore
import Foundation
import HTTPTypes

/// A client of a service's or a gateway's own at the realm's provider, one of a group of the server's `enforcement:`.
/// It gets access tokens (RFC 6749 §4.4) with the scope `enforcement`, and another one before the present one expires.
///
/// Many requests that need one at the same time share one call. After one that failed there is a pause, so that a wrong
/// secret is not tried for each request.
public actor ClientAccount: EnforcementCredentials {
    /// What the client proves itself with.
    package enum Proof: Sendable {
        /// Its secret (`client_secret_basic`).
        case secret(Secret)
        /// Its key (`private_key_jwt`; RFC 7523): this makes an assertion for one call, since a provider takes each
        /// once.
        case assertion(@Sendable () async throws -> String)
    }

    private let server: PolicyServer
    private let clientID: String
    private let proof: Proof
    /// What the engine calls the tokens: `DPoP` for those that belong to the client's key.
    private let tokenType: TokenScheme
    private let transport: any HTTPTransport
    private let clock: any WallClock

    /// Read without a turn of this actor: each question needs the token.
    private let current = Locked<(token: Secret, renewal: Date)?>(nil)
    private var pending: Task<Result<Secret, EnforcementError>, Never>?
    private var failure: (error: EnforcementError, pause: WaitingTime)?

    /// The scope that the engine wants of a group's client.
    private static let scope = "enforcement"

    /// How long a call that failed is not repeated, in seconds.
    private static let pause: TimeInterval = 2

    /// How many seconds before its end a token is replaced, at most a tenth of its life.
    private static let margin: TimeInterval = 60

    private static let limits = HTTPLimits(
        connect: .seconds(5), read: .seconds(10), total: .seconds(10), replyBytes: 64 << 10)

    /// A client that proves itself by its secret.
    ///
    /// - Parameters:
    ///   - server: the server, and the realm whose provider knows the client.
    ///   - clientID: its id.
    ///   - secret: its secret.
    ///   - transport: carries the calls; it verifies the server.
    ///   - clock: tells when a token is to be replaced.
    public init(
        _ server: PolicyServer, clientID: String, secret: Secret, transport: any HTTPTransport,
        clock: any WallClock = SystemClock()
    ) {
        self.init(
            server, clientID: clientID, proof: .secret(secret), tokenType: .bearer, transport: transport, clock: clock)
    }

    /// A client whose tokens are of the type `tokenType`.
    package init(
        _ server: PolicyServer, clientID: String, proof: Proof, tokenType: TokenScheme,
        transport: any HTTPTransport, clock: any WallClock
    ) {
        self.server = server
        self.clientID = clientID
        self.proof = proof
        self.tokenType = tokenType
        self.transport = transport
        self.clock = clock
    }

    /// The present access token, or another one where it is the refused one.
    public nonisolated func session(replacing refused: Secret?) async throws(EnforcementError) -> Secret {
        if let token = present(unless: refused) { return token }
        return try await renewed(unless: refused)
    }

    /// The present token, if it need not be replaced.
    private nonisolated func present(unless refused: Secret?) -> Secret? {
        guard let current = current.withLock({ $0 }), current.renewal > clock.now else { return nil }
        return refused == nil || refused != current.token ? current.token : nil
    }

    private func renewed(unless refused: Secret?) async throws(EnforcementError) -> Secret {
        // Another question may have brought one meanwhile.
        if let token = present(unless: refused) { return token }
        current.withLock { $0 = nil }
        if let pending { return try await pending.value.get() }
        if let failure, !failure.pause.isOver(at: clock.now) { throw failure.error }
        let task = Task { await self.fetched() }
        pending = task
        return try await task.value.get()
    }

    /// Ends what is pending in the same turn in which the token is there for all. Otherwise a caller whose token is
    /// refused at once, and who asks for another, would get the same one again.
    private func fetched() async -> Result<Secret, EnforcementError> {
        defer { pending = nil }
        do throws(EnforcementError) {
            let token = try await fetch()
            failure = nil
            return .success(token)
        } catch {
            failure = (error, WaitingTime(Self.pause, from: clock.now))
            return .failure(error)
        }
    }

    private func fetch() async throws(EnforcementError) -> Secret {
        let began = clock.now
        let json: JSONValue
        do {
            let reply = try await transport.send(try await call())
            let bytes = try await reply.body.collect(upTo: Self.limits.replyBytes)
            guard reply.status == 200 else {
                // What the reply says may be the client's secret come back; its status says enough.
                let code: EnforcementError.Code = (400..<500).contains(reply.status) ? .notSignedIn : .unavailable
                throw EnforcementError(
                    code, "The engine gave the client \(clientID) no access token: status \(reply.status).")
            }
            json = try JSONValue.parse(bytes, limits: JSONLimits(bytes: Self.limits.replyBytes))
        } catch let error as EnforcementError {
            throw error
        } catch {
            let why = (error as? HTTPTransportError)?.detail ?? "\(type(of: error))"
            throw EnforcementError(.unavailable, "The engine gave the client \(clientID) no access token: \(why)")
        }
        guard let token = json["access_token"]?.string, !token.isEmpty, let seconds = json["expires_in"]?.integer,
            seconds > 0, json["token_type"]?.string?.equalsIgnoringASCIICase(tokenType.rawValue) == true
        else { throw EnforcementError(.malformedReply, "The engine's reply has no access token that can be used.") }
        let life = TimeInterval(seconds)
        let secret = Secret(token)
        let renewal = began.addingTimeInterval(life - min(Self.margin, life / 10))
        current.withLock { $0 = (secret, renewal) }
        return secret
    }

    private func call() async throws -> HTTPCall {
        var fields = HTTPFields()
        fields[.accept] = "application/json"
        fields[.contentType] = FormEncoding.mediaType
        var form = FormItems(["grant_type": "client_credentials", "scope": Self.scope])
        switch proof {
        case .secret(let secret):
            let pair = "\(PercentEncoding.encode(clientID)):\(PercentEncoding.encode(secret.reveal()))"
            fields[.authorization] = "Basic \(Data(pair.utf8).base64EncodedString())"
        case .assertion(let make):
            form.append("client_id", clientID)
            form.append("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
            form.append("client_assertion", try await make())
        }
        return try HTTPCall(
            .post, url: server.tokenEndpoint, headerFields: fields,
            body: HTTPBody(Array(FormEncoding.encode(form).utf8)), limits: Self.limits)
    }
}
