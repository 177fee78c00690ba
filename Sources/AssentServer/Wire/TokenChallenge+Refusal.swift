import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

extension TokenChallenge {
    /// The challenge that belongs to a refusal.
    init(_ refusal: TokenRefusal, scopes: [String] = []) {
        self.init(refusal.scheme, error: refusal.error)
        if refusal.reason == .insufficientScope, !scopes.isEmpty {
            parameters = [.init(name: "scope", value: scopes.joined(separator: " "))]
        }
    }
}

extension Response {
    /// Gives the client the nonce for its next proof, where there is one.
    mutating func give(nonce: String?) { headers.give(nonce: nonce) }
}
