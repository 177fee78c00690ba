import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes

let registrationEndpoint = "\(issuer)/register"

/// A server that registers installations, as strict as Assent's: it wants a proof by the key, once, and afterwards
/// takes nothing for a client but assertions by its key, and nothing for its registration but the token with the key.
final class RegistrationDoor: Sendable {
    struct Client: Sendable {
        let keys: JWKSet
        let token: Secret
        let metadata: JSONObject
    }

    struct State: Sendable {
        var clients: [String: Client] = [:]
        /// How many were registered, also those that have ended.
        var registered = 0
        /// What the initial access token must be; `nil` when none is wanted.
        var initialToken: String?
        var assertions: Set<String> = []
        /// What answers a registration in place of the server, before it has done anything.
        var refusal: HTTPReply?
        /// Changes the answer to a registration, or to a change of one.
        var spoil: @Sendable (inout JSONObject) -> Void = { _ in }
        /// Runs when a client was registered, before the answer.
        var registeredHook: @Sendable () async throws -> Void = {}
        /// What answers a request about a registration in place of the server.
        var management: HTTPReply?
    }

    let state: Locked<State>
    let proofs: ProofDoor
    private let clock: any WallClock

    init(clock: any WallClock, nonce: String? = nil, initialToken: String? = nil) {
        self.clock = clock
        proofs = ProofDoor(clock, nonce: nonce)
        state = Locked(State(initialToken: initialToken))
    }

    func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

    /// The ids of the clients that are registered now.
    var clientIDs: [String] { state.withLock { $0.clients.keys.sorted() } }

    var registered: Int { state.withLock { $0.registered } }

    // MARK: Registering

    func register(_ exchange: InMemoryTransport.Exchange) async throws -> HTTPReply {
        let now = state.withLock { $0 }
        if let refusal = now.refusal { return refusal }
        let authorization = exchange.field("Authorization")
        guard authorization == now.initialToken.map({ "Bearer \($0)" }) else {
            return Self.error(401, "invalid_token", scheme: "Bearer")
        }
        if let error = proofs.refusal(of: exchange) {
            return .json(400, ["error": .string(error)], headers: proofs.fields)
        }
        let asked = try JSONValue.parse(exchange.body)
        guard let app = asked["software_id"]?.string, let jwks = asked["jwks"], let keys = try? JWKSet(jwks),
            keys.keys.count == 1, proofs.seen.last?.thumbprint == keys.keys.first?.thumbprint
        else { return Self.error(400, "invalid_client_metadata") }
        let number = state.withLock { state in
            state.registered += 1
            return state.registered
        }
        let id = "\(app)~\(number)"
        let token = "registration-token-\(number)"
        var answer = asked.object ?? JSONObject()
        answer["client_id"] = .string(id)
        answer["client_id_issued_at"] = .integer(clock.epochSeconds)
        answer["registration_client_uri"] = .string("\(registrationEndpoint)/\(id)")
        let client = Client(keys: keys, token: Secret(token), metadata: answer)
        change { $0.clients[id] = client }
        answer["registration_access_token"] = .string(token)
        now.spoil(&answer)
        try await now.registeredHook()
        return .json(201, .object(answer))
    }

    /// Answers GET, PUT and DELETE of a registration.
    func manage(_ exchange: InMemoryTransport.Exchange) -> HTTPReply {
        if let reply = state.withLock({ $0.management }) { return reply }
        let id = (exchange.request.url ?? "").split(separator: "/").last.map(String.init) ?? ""
        guard let client = state.withLock({ $0.clients[id] }),
            exchange.field("Authorization") == "DPoP \(client.token.reveal())"
        else { return Self.error(401, "invalid_token", scheme: "DPoP") }
        if let error = proofs.refusal(of: exchange, token: client.token) {
            return Self.error(401, error, scheme: "DPoP", fields: proofs.fields)
        }
        guard proofs.seen.last?.thumbprint == client.keys.keys.first?.thumbprint else {
            return Self.error(401, "invalid_token", scheme: "DPoP")
        }
        switch exchange.request.method {
        case .put: return replace(client, id, by: exchange.json.object ?? JSONObject())
        case .delete:
            change { $0.clients[id] = nil }
            return HTTPReply(HTTPResponse(status: .noContent))
        default: return .json(200, .object(client.metadata))
        }
    }

    /// Replaces all that a client has registered but its key.
    private func replace(_ client: Client, _ id: String, by asked: JSONObject) -> HTTPReply {
        let told = ["client_id_issued_at", "registration_client_uri"]
        guard asked["client_id"]?.string == id, asked["software_id"] == client.metadata["software_id"],
            asked["jwks"] == client.metadata["jwks"],
            (told + ["registration_access_token"]).allSatisfy({ asked[$0] == nil })
        else { return Self.error(400, "invalid_client_metadata") }
        var answer = asked
        for name in told { answer[name] = client.metadata[name] }
        let changed = Client(keys: client.keys, token: client.token, metadata: answer)
        change { $0.clients[id] = changed }
        answer["registration_access_token"] = .string(client.token.reveal())
        let spoil = state.withLock { $0.spoil }
        spoil(&answer)
        return .json(200, .object(answer))
    }

    // MARK: Afterwards

    /// Whether a form is authenticated by a registered client, with an assertion that was not used before.
    func accepts(_ form: FormItems) -> Bool {
        let id = form["client_id"] ?? ""
        guard let client = state.withLock({ $0.clients[id] }), let text = form["client_assertion"],
            form["client_assertion_type"] == ClientDoor.assertionType, let message = try? UnverifiedJWS.parse(text),
            let verified = try? message.verified(with: client.keys, algorithms: ClientKey.algorithms),
            let claims = try? JWTValidation(
                issuer: id, audiences: [issuer], clock: clock, leeway: 0,
                requiredClaims: ["iss", "sub", "aud", "exp", "iat", "jti"]
            ).validate(verified), claims.sub == id
        else { return false }
        return state.withLock { $0.assertions.insert(text).inserted }
    }

    static func error(
        _ status: Int, _ error: String, scheme: String? = nil, fields: HTTPFields = [:]
    ) -> HTTPReply {
        var fields = fields
        if let scheme { fields[.wwwAuthenticate] = "\(scheme) error=\"\(error)\"" }
        return .json(status, ["error": .string(error)], headers: fields)
    }
}

extension FakeProvider {
    /// A server that registers installations, and gives tokens to them alone.
    static func registering(
        clock: ManualClock, nonce: String? = nil, initialToken: String? = nil
    ) throws -> (FakeProvider, RegistrationDoor) {
        let provider = try FakeProvider(clock: clock)
        let door = RegistrationDoor(clock: clock, nonce: nonce, initialToken: initialToken)
        provider.registers(by: door)
        return (provider, door)
    }

    /// Has this server register installations, and give tokens to them alone.
    func registers(by door: RegistrationDoor) {
        change {
            $0.discovery["registration_endpoint"] = .string(registrationEndpoint)
            $0.tokenReply = { [self] form in
                guard door.accepts(form) else { return Self.refusal }
                let audience = form["client_id"].map(JSONValue.string)
                change { behaviour in behaviour.claims = { claims in claims["aud"] = audience } }
                return .json(200, try await grant(form))
            }
            $0.other = { exchange in
                let url = exchange.request.url ?? ""
                if url == registrationEndpoint { return try await door.register(exchange) }
                if url.hasPrefix("\(registrationEndpoint)/") { return door.manage(exchange) }
                guard url.hasSuffix("/token/revoke") else { return .json(200, [:]) }
                return door.accepts(exchange.form) ? HTTPReply(HTTPResponse(status: .ok)) : Self.refusal
            }
        }
    }

    /// A process of an installation that registers.
    func installation(
        _ ring: KeyRing, configure: (inout TokenConfiguration) -> Void = { _ in }
    ) throws -> TokenManager {
        try manager {
            $0.registration = RegistrationConfiguration(keys: ring)
            configure(&$0)
        }
    }

    /// The registrations that were asked for.
    var registrations: [InMemoryTransport.Exchange] {
        exchanges.withLock { $0 }.filter { $0.request.url == registrationEndpoint }
    }

    /// The requests about a registration.
    func managed(_ method: HTTPRequest.Method) -> [InMemoryTransport.Exchange] {
        exchanges.withLock { $0 }.filter {
            $0.request.url?.hasPrefix("\(registrationEndpoint)/") == true && $0.request.method == method
        }
    }
}

extension InMemoryTransport.Exchange {
    var json: JSONValue { (try? JSONValue.parse(body)) ?? .null }
}
