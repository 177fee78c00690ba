import AssentCore
import AssentJOSE
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

/// On both databases. `KindRoundTripTests` counts round trips, of calls through the whole gateway.
@Suite("Statements that a call's access token takes, by the kind of its caller")
struct KindStatementTests {
    private static let url = "https://api.bank.example/greeting"

    @Test("A token of an installation or of a remembered user is found, and its proof spent, by as many as a user's")
    func tokens() async throws {
        let world = try await LoginWorld()
        let tally = StatementTally(world.database)
        let node = try LoginWorld.node(tally, of: world.signing)
        try await SenderProofs.begin(node.context)
        let proofs = SenderProofs(node.context)
        let callers = Callers(
            sessions: Sessions(node.context), providers: [node.configuration.realm: node], proofs: proofs)
        let tokens: [(CallerKind, Secret)] = [
            (.user, try await world.logIn(try await world.typed(), scope: "accounts").accessToken),
            (.implicit, try await world.logIn(try world.implicit()).accessToken),
            (.device, try await Self.ownToken(world).accessToken),
        ]
        var counts: [CallerKind: Set<Int>] = [:]
        for round in 0..<3 {
            for (kind, token) in tokens {
                let proof = try await DPoPProof.make(
                    method: "GET", uri: Self.url, accessToken: token, nonce: proofs.nonce(of: .gateway),
                    key: world.key.key, clock: world.clock)
                let credentials = PresentedCredentials(
                    accessToken: .token(token, .dpop),
                    proof: PresentedProof(fields: [proof], method: "GET", url: Self.url, server: .gateway))
                let before = tally.count
                let caller = try await callers.caller(withToken: credentials, realm: "/alpha")
                // The first round reads the keys.
                if round > 0 { counts[kind, default: []].insert(tally.count - before) }
                #expect(caller.kind == kind)
            }
        }
        let ofUser = try #require(counts[.user])
        #expect(ofUser.count == 1 && ofUser != [0])
        #expect(counts[.implicit] == ofUser && counts[.device] == ofUser)
    }

    /// A token of the installation itself.
    private static func ownToken(_ world: LoginWorld) async throws -> IssuedTokens {
        let client = try await world.key.assertion(of: world.instance, now: world.clock)
        let form = try ProviderFixture.parameters(
            ["grant_type": OAuthClient.GrantType.clientCredentials.rawValue],
            AssertionKey.form(client, ["scope": "accounts"]))
        let caller = try await world.provider.clients.client(of: form, authorization: nil, at: .token)
        let proof = TokenRequestProof(keyThumbprint: world.key.jwk.thumbprint)
        return try await world.provider.tokens(form, of: caller, proof: proof) {}
    }
}
