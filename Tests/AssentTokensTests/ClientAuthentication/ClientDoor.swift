import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes

/// The token and revocation endpoints of a server that knows a client by its key, and takes each assertion once.
final class ClientDoor: Sendable {
    struct State: Sendable {
        var keys: JWKSet
        var taken: [JWTClaims] = []
        /// Each assertion that came, good or not.
        var texts: [String] = []
    }

    static let assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

    let state: Locked<State>
    private let clock: any WallClock

    init(_ keys: JWKSet, clock: any WallClock) {
        state = Locked(State(keys: keys))
        self.clock = clock
    }

    /// The claims of the assertions that were good, in order.
    var taken: [JWTClaims] { state.withLock { $0.taken } }

    var texts: [String] { state.withLock { $0.texts } }

    /// Whether a request is this client's, as a server of the strictest profile looks at it (FAPI 2.0 §5.3.2.1): the
    /// issuer alone as audience, and as a string.
    func accepts(_ form: FormItems) -> Bool {
        guard form["client_assertion_type"] == Self.assertionType, let text = form["client_assertion"] else {
            return false
        }
        let keys = state.withLock { state in
            state.texts.append(text)
            return state.keys
        }
        let validation = JWTValidation(
            issuer: "bank-app", audiences: [issuer], clock: clock, leeway: 0,
            requiredClaims: ["iss", "sub", "aud", "exp", "iat", "jti"])
        guard form["client_id"] == "bank-app", let message = try? UnverifiedJWS.parse(text), message.keyID != nil,
            let verified = try? message.verified(with: keys, algorithms: ClientKey.algorithms),
            let claims = try? validation.validate(verified), claims.sub == "bank-app",
            claims["aud"]?.string == issuer, let jti = claims.jti
        else { return false }
        return state.withLock { state in
            guard !state.taken.contains(where: { $0.jti == jti }) else { return false }
            state.taken.append(claims)
            return true
        }
    }
}

extension FakeProvider {
    static let refusal = HTTPReply.json(401, ["error": "invalid_client"])

    /// Has the endpoints for tokens and revocations take what this client's key has signed, alone. `proofs` looks at
    /// the proofs behind that.
    func authenticates(by door: ClientDoor, proofs: ProofDoor? = nil) {
        change {
            if proofs != nil { $0.tokenType = "DPoP" }
            $0.tokenReply = { [self] form in
                guard door.accepts(form) else { return Self.refusal }
                if let proofs, let sent = sent("/access_token").last, let error = proofs.refusal(of: sent) {
                    return .json(400, ["error": .string(error)], headers: proofs.fields)
                }
                return .json(200, try await grant(form))
            }
            $0.other = { exchange in
                guard (exchange.request.url ?? "").hasSuffix("/token/revoke") else { return .json(200, [:]) }
                return door.accepts(exchange.form) ? HTTPReply(HTTPResponse(status: .ok)) : Self.refusal
            }
        }
    }

    /// A manager that is the client of the key called `bank`, after a sign-in.
    func clientSignedIn(
        _ ring: KeyRing, configure: (inout TokenConfiguration) -> Void = { _ in }
    ) async throws -> TokenManager {
        try await signedIn {
            $0.clientAuthentication = .privateKeyJWT(keys: ring, named: "bank")
            configure(&$0)
        }
    }
}
