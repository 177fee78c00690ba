import AssentCore
import AssentTesting
import Testing

@testable import AssentEngine

extension ProviderFixture {
    static let linkTarget = "https://shop.example/orders?from=app"

    /// An app that may sign browsers in.
    static var linking: OAuthApp { pay { $0.webLinks = [linkTarget] } }

    var links: WebLinks { WebLinks(context) }

    /// The user's token at a new instance of the app.
    func linkingAccess(scope: String = "openid accounts offline_access") async throws -> AccessGrant {
        let (registered, key) = try await instance()
        let tokens = try await userTokens(of: registered.id, key, scope: scope)
        return try #require(try await grants.access(token: tokens.accessToken))
    }

    /// A link for a new instance of the app.
    func webLink() async throws -> Secret { try await webLink(for: try await linkingAccess()) }

    func webLink(for access: AccessGrant, to target: String? = linkTarget) async throws -> Secret {
        try await links.make(to: target, for: access, in: grants.configuration).id
    }

    /// Uses a link as its page does; the session's token, or `nil`.
    func use(_ link: Secret, on node: EngineContext? = nil) async throws -> Secret? {
        let links = WebLinks(node ?? context)
        guard let found = try await links.find(link) else { return nil }
        return try await links.use(found)
    }

    /// The live session of a token.
    func live(_ token: Secret?) async throws -> LiveSession? {
        guard let token else { return nil }
        return try await Sessions(context).live(token: token)
    }
}
