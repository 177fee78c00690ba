import Assent
import AssentCore
import AssentJOSE
import HTTPTypes

/// Somebody elsewhere who has copies of what an app keeps, but not the app's key.
struct Thief: Sendable {
    /// What was copied.
    struct Loot: Sendable {
        let accessToken: Secret
        let refreshToken: Secret
        let session: Secret
        /// The installation's client id.
        let clientID: String
        /// Where its registration is.
        let registration: String
        let registrationToken: Secret
        /// What let the installation register.
        let initialToken: Secret
    }

    /// What comes back to a thief.
    struct Answer: Sendable, CustomStringConvertible {
        let status: Int
        /// OAuth's code of what is wrong: from the challenge, or from the body where the challenge has none.
        let error: String?
        /// The nonce for the next proof.
        let nonce: String?

        init(_ reply: HTTPReply) async throws {
            let fields = reply.response.headerFields
            let challenges = try fields[.wwwAuthenticate].map { try Challenge.parse($0) } ?? []
            let body = try? JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))
            status = reply.status
            error = challenges.lazy.compactMap { $0["error"] }.first ?? body?["error"]?.string
            nonce = fields[.dpopNonce]
        }

        /// Status and code, for people: `401 invalid_token`.
        var description: String {
            DisplayText.escapedForTerminal(([String(status)] + [error].compactMap(\.self)).joined(separator: " "))
        }
    }

    /// The thief's own connections.
    let transport: any HTTPTransport
    let clock: any WallClock

    /// The thief's own key.
    private let key: SoftwareSigningKey

    init(transport: any HTTPTransport, clock: any WallClock) throws {
        self.transport = transport
        self.clock = clock
        key = try SoftwareSigningKey.generate(.es256)
    }

    /// Runs `body` with a thief who has connections and a key of their own.
    static func run(against story: Story, _ body: (Thief) async throws -> Void) async throws {
        let connections = try Story.connections(to: story.world, clock: story.clock, logger: story.logger)
        let thief = try Thief(
            transport: NarratingTransport(
                transport: connections, narration: story.narration, parties: story.parties, sender: .thief),
            clock: story.clock)
        try await body(thief)
        await connections.shutdown()
    }

    /// Sends a request as it is.
    func send(_ request: HTTPRequest, form: FormItems? = nil, json: JSONValue? = nil) async throws -> Answer {
        var request = request
        if form != nil { request.headerFields[.contentType] = FormEncoding.mediaType }
        if json != nil { request.headerFields[.contentType] = "application/json" }
        let body = form.map { HTTPBody(FormEncoding.encode($0)) } ?? json.map { HTTPBody($0.serializedBytes()) }
        return try await Answer(try await transport.send(HTTPCall(request, body: body, limits: HTTPLimits())))
    }

    /// Sends a request with a proof by the thief's own key, made for `token` if one goes along. Where the server wants
    /// a nonce in it, everybody gets one.
    func prove(
        _ request: HTTPRequest, token: Secret? = nil, form: FormItems? = nil, json: JSONValue? = nil
    ) async throws -> Answer {
        let answer = try await send(try await proved(request, token, nonce: nil), form: form, json: json)
        guard answer.error == "use_dpop_nonce", let nonce = answer.nonce else { return answer }
        return try await send(try await proved(request, token, nonce: nonce), form: form, json: json)
    }

    /// An assertion by the thief's own key that says it is this client.
    func assertion(_ clientID: String, for issuer: String) async throws -> String {
        let now = clock.epochSeconds
        var claims = JWTClaims()
        claims.iss = clientID
        claims.sub = clientID
        claims["aud"] = .string(issuer)
        claims.jti = SystemRandom().token()
        claims["iat"] = .integer(now)
        claims["exp"] = .integer(now + 60)
        return try await JWS.sign(claims.payload, with: key)
    }

    /// The public half of the thief's own key.
    var keySet: JWKSet { get throws { JWKSet([try JWK(publicKeyInfo: key.publicKeyInfo)]) } }

    private func proved(_ request: HTTPRequest, _ token: Secret?, nonce: String?) async throws -> HTTPRequest {
        var request = request
        request.headerFields[.dpop] = try await DPoPProof.make(
            method: request.method.rawValue, uri: request.url ?? "", accessToken: token, nonce: nonce, key: key,
            clock: clock)
        return request
    }
}
