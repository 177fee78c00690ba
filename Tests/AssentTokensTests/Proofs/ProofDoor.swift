import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

let tokenEndpoint = "\(issuer)/access_token"

/// A door of a server that takes proofs alone, each once, and remembers what it saw.
final class ProofDoor: Sendable {
    struct State: Sendable {
        /// The nonce that proofs must have; `nil` when none is wanted.
        var nonce: String?
        /// Whether no proof is ever good enough: each is answered with a new nonce.
        var isNeverContent = false
        /// Whether each good proof is answered with another nonce, as a server does that exchanges them.
        var renews = false
        var asked = 0
        var seen: [DPoPProof] = []
        var texts: [String] = []
    }

    let state = Locked(State())
    private let clock: any WallClock

    init(_ clock: any WallClock, nonce: String? = nil, isNeverContent: Bool = false, renews: Bool = false) {
        self.clock = clock
        state.withLock { state in
            state.nonce = nonce
            state.isNeverContent = isNeverContent
            state.renews = renews
        }
    }

    /// The proofs that were good.
    var seen: [DPoPProof] { state.withLock { $0.seen } }

    /// How often somebody came.
    var asked: Int { state.withLock { $0.asked } }

    /// Each value of `DPoP` that came, good or not.
    var texts: [String] { state.withLock { $0.texts } }

    var nonce: String? { state.withLock { $0.nonce } }

    func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

    /// The fields of a reply.
    var fields: HTTPFields {
        var fields = HTTPFields()
        if let name = HTTPField.Name("DPoP-Nonce"), let nonce { fields[name] = nonce }
        return fields
    }

    /// Why a request is refused, as the `error`; `nil` when its proof is good.
    func refusal(of exchange: InMemoryTransport.Exchange, token: Secret? = nil) -> String? {
        let proof = exchange.field("DPoP") ?? ""
        let nonce = state.withLock { state in
            state.asked += 1
            state.texts.append(proof)
            if state.isNeverContent { state.nonce = "n-\(state.asked)" }
            return state.isNeverContent ? "never" : state.nonce
        }
        do {
            let verified = try DPoPProof.verify(
                proof, method: exchange.request.method.rawValue, uri: exchange.request.url ?? "", accessToken: token,
                nonces: nonce.map { [$0] }, clock: clock)
            return state.withLock { state in
                guard !state.seen.contains(where: { $0.jti == verified.jti }) else { return "invalid_dpop_proof" }
                state.seen.append(verified)
                if state.renews { state.nonce = "r-\(state.asked)" }
                return nil
            }
        } catch {
            return error.code == .wrongNonce ? "use_dpop_nonce" : "invalid_dpop_proof"
        }
    }
}

extension FakeProvider {
    /// Has the token endpoint take requests with proofs alone, and give tokens that are bound.
    func binds(_ door: ProofDoor, tokenType: JSONValue? = "DPoP") {
        change {
            $0.tokenType = tokenType
            $0.tokenReply = { [self] form in
                guard let sent = sent("/access_token").last else { return .json(500, [:]) }
                if let error = door.refusal(of: sent) {
                    return .json(400, ["error": .string(error)], headers: door.fields)
                }
                return .json(200, try await grant(form), headers: door.fields)
            }
        }
    }

    /// A manager whose tokens are bound to a key of `ring`.
    func bound(_ ring: KeyRing) throws -> TokenManager { try manager { $0.dpop = .on(keys: ring) } }

    /// The same, after a sign-in.
    func boundSignedIn(_ ring: KeyRing) async throws -> TokenManager {
        let manager = try bound(ring)
        try await manager.install(Session(token: Secret("SESS")))
        return manager
    }

    /// Takes from what is stored under a name that begins so, in one way after the other, that it belongs to a key, and
    /// checks each time what must hold then.
    func tampering(with prefix: String, _ check: () async throws -> Void) async throws {
        let name = try #require(await store.names().first { $0.hasPrefix(prefix) })
        let value = try #require(try await store.value(name)).value
        let json = try #require(try JSONValue.parse(value.revealBytes()).object)
        #expect(json["v"] == 2)
        for change in [
            { $0["dpop"] = nil }, { $0["dpop"] = .null }, { $0["dpop"] = ["key": "k"] }, { $0["v"] = 1 },
        ] as [(inout JSONObject) -> Void] {
            var changed = json
            change(&changed)
            let bytes = JSONValue.object(changed).serializedBytes()
            try await store.update(name, to: Secret(bytes: bytes), expected: .any)
            try await check()
        }
    }

    /// The token requests with this grant.
    func tokenRequests(_ grant: String) -> [InMemoryTransport.Exchange] {
        sent("/access_token").filter { $0.form["grant_type"] == grant }
    }
}
