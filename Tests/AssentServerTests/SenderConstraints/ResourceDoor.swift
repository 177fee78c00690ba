import AssentCore
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A door that a client comes to with an access token, in tests of what proves the token's key.
enum ResourceDoor: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case userInfo = "userinfo"
    case gateway = "the gateway"
    case constrained = "a route with `senderConstrained`"
    case party = "a relying party's calls"
    case evidence = "evidence"

    var testDescription: String { rawValue }

    /// Whose tokens it takes.
    var isOfParty: Bool { self == .party || self == .evidence }

    /// Whether a session may open it.
    var takesSessions: Bool { self != .userInfo && self != .party }

    /// Whose nonces it takes.
    var server: ProofServer { self == .gateway || self == .constrained ? .gateway : .authorizationServer }

    /// An address at the door, and another one that nothing else asks for where that can be.
    func url(_ fixture: ServerFixture, _ name: String = "x") -> String {
        switch self {
        case .userInfo: fixture.oauth("userinfo")
        case .gateway: fixture.gateway("/files/\(name)")
        case .constrained: fixture.gateway("/files/keyed/\(name)")
        case .party: fixture.signing("transactions/\(name)")
        case .evidence: fixture.signing("transactions/\(name)/evidence")
        }
    }

    /// Whether an answer shows that the credential was accepted: there is no such transaction.
    func accepts(_ answer: Answer) -> Bool { answer.status == (isOfParty ? 404 : 200) }

    /// What the door says, as the page about it does.
    func outcome(_ answer: Answer) throws -> String {
        if accepts(answer) { return "yes" }
        guard let field = answer["WWW-Authenticate"] else {
            return "\(answer.status)" + (answer.error.map { " `\($0)`" } ?? "")
        }
        #expect(answer.all("WWW-Authenticate").count == 1)
        let challenge = try #require(try Challenge.parse(field).first)
        #expect(challenge.isScheme("DPoP") == (challenge["algs"] == "ES256 ES384 PS256 EdDSA"))
        let error = challenge["error"]
        #expect((error == "use_dpop_nonce") == (answer["DPoP-Nonce"] != nil))
        return "\(answer.status) `\(challenge.scheme)`" + (error.map { " `\($0)`" } ?? "")
    }

    /// A token for the door that belongs to `key`.
    func boundToken(_ fixture: ServerFixture, session: String, to key: ProofKey) async throws -> String {
        isOfParty
            ? try await fixture.boundPartyToken(to: key)
            : try await fixture.boundToken(session: session, to: key)
    }

    /// A token for the door that belongs to no key.
    func bearerToken(_ fixture: ServerFixture, session: String) async throws -> String {
        isOfParty
            ? try await SigningOverHTTP(fixture).shop() : try await fixture.tokens(session: session).access
    }
}
