import AssentCore
import Foundation
import Testing

@testable import AssentTokens

@Suite struct DecisionTests {
    static let now = Date(timeIntervalSince1970: 1_800_000_000)
    static let mine = Session(token: Secret("S1"))
    static let other = Session(token: Secret("S2"))
    static let none = Session(token: Secret(""))

    static func tokens(_ seconds: Int64?, refresh: Bool, of session: Session? = mine) throws -> TokenSet {
        var json: JSONObject = JSONObject([.init(name: "v", value: 1), .init(name: "access_token", value: "A")])
        if refresh { json["refresh_token"] = "R" }
        json["expires_at"] = seconds.map { .integer(Int64(now.timeIntervalSince1970) + $0) }
        json["session"] = session.map { .string(TokenSet.fingerprint(of: $0)) }
        return try #require(TokenSet(stored: Secret(bytes: JSONValue.object(json).serializedBytes())))
    }

    private func decide(_ tokens: TokenSet?, _ session: Session?, rejected: Secret? = nil) -> TokenDecision {
        TokenDecision(tokens: tokens, session: session, now: Self.now, margin: 60, rejected: rejected)
    }

    @Test("Nothing stored: sign in, or use the session")
    func empty() {
        #expect(decide(nil, nil) == .signIn(.notSignedIn))
        #expect(decide(nil, Self.none) == .signIn(.notSignedIn))
        #expect(decide(nil, Self.mine) == .authorize(Self.mine))
    }

    @Test(
        "A token is used until the margin before its end",
        arguments: [(61, true), (60, false), (59, false), (0, false), (-1, false)] as [(Int64, Bool)])
    func margin(seconds: Int64, good: Bool) throws {
        let tokens = try Self.tokens(seconds, refresh: true)
        #expect(decide(tokens, Self.mine) == (good ? .use(tokens) : .refresh(tokens, refreshToken: Secret("R"))))
        let plain = try Self.tokens(seconds, refresh: false)
        #expect(decide(plain, Self.mine) == (good ? .use(plain) : .authorize(Self.mine)))
        let alone = try Self.tokens(seconds, refresh: false)
        #expect(decide(alone, nil) == (good ? .use(alone) : .signIn(.expired)))
    }

    @Test("A token whose end is unknown is used until it is refused")
    func endless() throws {
        let tokens = try Self.tokens(nil, refresh: true)
        #expect(decide(tokens, Self.mine) == .use(tokens))
        #expect(decide(tokens, Self.mine, rejected: Secret("A")) == .refresh(tokens, refreshToken: Secret("R")))
        #expect(decide(tokens, Self.mine, rejected: Secret("B")) == .use(tokens))
    }

    @Test("Tokens of another session are never used, not even to refresh")
    func otherSession() throws {
        for refresh in [true, false] {
            #expect(decide(try Self.tokens(600, refresh: refresh), Self.other) == .authorize(Self.other))
            #expect(decide(try Self.tokens(600, refresh: refresh, of: nil), Self.mine) == .authorize(Self.mine))
        }
    }
}
