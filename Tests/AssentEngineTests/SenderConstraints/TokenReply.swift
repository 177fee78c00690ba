import AssentCore
import AssentStore

@testable import AssentEngine

/// What a node of an exploration tells a client that asks for tokens.
enum TokenReply {
    case given(IssuedTokens)
    case refused(OAuthError.Code)
    /// Nobody knows whether it was done, or it was not.
    case unavailable
    /// The node's process has died.
    case none

    /// Asks, at a node that may die meanwhile.
    init(from node: NodeDatabase? = nil, _ ask: () async throws -> IssuedTokens) async {
        do {
            let tokens = try await ask()
            self = node?.isDead == true ? .none : .given(tokens)
        } catch {
            if node?.isDead == true {
                self = .none
            } else if let refusal = error as? OAuthError {
                self = .refused(refusal.code)
            } else {
                self = .unavailable
            }
        }
    }

    var tokens: IssuedTokens? {
        if case .given(let tokens) = self { return tokens }
        return nil
    }

    var refusal: OAuthError.Code? {
        if case .refused(let code) = self { return code }
        return nil
    }
}

extension ProviderFixture {
    /// A node of the same server whose writes may fail.
    func node(_ database: any SQLDatabase) throws -> OAuthProvider {
        try OAuthProvider(context.anotherNode(on: database), keys: grants.keys, configuration: grants.configuration)
    }

    /// How many requests for tokens were granted, by the audit log.
    func grantedCount() async throws -> Int64 {
        try await count(
            "audit", where: "outcome = 'success' AND event IN ('oauth.code', 'oauth.refresh', 'oauth.client')")
    }
}
