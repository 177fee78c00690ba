import AssentCore
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

/// Users who sign in elsewhere than in a journey, at the provider of a fixture.
struct TokenlessFixture: Sendable {
    let fixture: ProviderFixture
    let grants: GrantWithoutRedirect
    let sessions: Sessions

    init(_ fixture: ProviderFixture) {
        self.fixture = fixture
        grants = GrantWithoutRedirect(fixture.grants)
        sessions = Sessions(fixture.context)
    }

    init() async throws { self.init(try await ProviderFixture()) }

    func signIn(secondsAgo: Int64 = 0, user: User? = nil) -> ProvedSignIn {
        ProvedSignIn(
            user: user ?? fixture.user, authLevel: 3, acr: "urn:bank:device", amr: ["pop", "pin"],
            authTime: fixture.clock.epochSeconds - secondsAgo)
    }

    static func credentials(_ client: String) -> [String: String?] {
        ["client_id": client, "client_secret": client == "back end" ? ProviderFixture.secret : nil]
    }

    func caller(_ client: String) async throws -> AuthenticatedClient {
        try await fixture.grants.clients.client(
            of: try ProviderFixture.parameters([:], Self.credentials(client)), authorization: nil, at: .token)
    }

    func tokens(
        _ scopes: [String] = ["openid", "accounts"], client: String = "bank-app", of signIn: ProvedSignIn? = nil,
        key: String? = nil, spending: [SQLStatement] = []
    ) async throws -> IssuedTokens {
        try await grants.tokens(
            for: signIn ?? self.signIn(), scopes: scopes, to: try await caller(client), keyThumbprint: key,
            spending: spending, claimingProof: {})
    }

    /// The rows of the sessions without a token.
    func rows() async throws -> [SQLRow] {
        try await fixture.database.run(
            .read("SELECT * FROM sessions WHERE id <> \(fixture.session.id) ORDER BY created_at, id"))
    }

    /// Whether neither a session without a token nor a grant is left of an attempt.
    func isUntouched() async throws -> Bool {
        for table in ["grants", "refresh_tokens"] where try await fixture.count(table) != 0 { return false }
        return try await rows().isEmpty
    }
}
