import AssentCore
import Foundation
import Testing

@testable import AssentTokens

@Suite struct DecisionTests {
    static let now = Date(timeIntervalSince1970: 1_800_000_000)
    static let mine = Session(token: Secret("S1"))
    static let other = Session(token: Secret("S2"))
    static let none = Session(token: Secret(""))

    static func tokens(
        _ seconds: Int64?, refresh: Bool, of session: Session? = mine, age: Int64 = 600
    ) throws -> TokenSet {
        var json: JSONObject = JSONObject([.init(name: "v", value: 1), .init(name: "access_token", value: "A")])
        if refresh { json["refresh_token"] = "R" }
        json["expires_at"] = seconds.map { .integer(Int64(now.timeIntervalSince1970) + $0) }
        json["obtained_at"] = .integer(Int64(now.timeIntervalSince1970) - age)
        json["session"] = session.map { .string(TokenSet.fingerprint(of: $0)) }
        return try #require(TokenSet(stored: Secret(bytes: JSONValue.object(json).serializedBytes())))
    }

    private func decide(_ tokens: TokenSet?, _ session: Session?, rejected: Secret? = nil) -> TokenRenewal.Step {
        var renewal = TokenRenewal(margin: 60, leeway: 30, rejected: rejected)
        return renewal.loaded(tokens: tokens, session: session, now: Self.now)
    }

    private func signIn(_ reason: SignInReason) -> TokenRenewal.Step {
        .fail(TokenError(.signInNeeded, "", signInReason: reason))
    }

    @Test("Nothing stored: sign in, or use the session")
    func empty() {
        #expect(decide(nil, nil) == signIn(.notSignedIn))
        #expect(decide(nil, Self.none) == signIn(.notSignedIn))
        #expect(decide(nil, Self.mine) == .authorize(Self.mine))
    }

    @Test(
        "A token is renewed from the margin before its end, and used until its end when nothing renews it",
        arguments: [(61, true), (60, false), (59, false), (1, false), (0, false), (-1, false)] as [(Int64, Bool)])
    func margin(seconds: Int64, good: Bool) throws {
        let tokens = try Self.tokens(seconds, refresh: true)
        #expect(decide(tokens, Self.mine) == (good ? .use(tokens) : .refresh(tokens, refreshToken: Secret("R"))))
        let plain = try Self.tokens(seconds, refresh: false)
        #expect(decide(plain, Self.mine) == (good ? .use(plain) : .authorize(Self.mine)))
        #expect(decide(plain, nil) == (seconds > 0 ? .use(plain) : .remove(plain, .expired)))
    }

    @Test("Tokens whose key is lost are removed, good or not; the session or a sign-in follows, and nothing uses them")
    func keyLost() throws {
        for seconds in [600, 30, -1] as [Int64] {
            for session in [nil, Self.mine] {
                let tokens = try Self.tokens(seconds, refresh: true)
                var renewal = TokenRenewal(margin: 60, leeway: 30)
                let step = renewal.loaded(tokens: tokens, session: session, isKeyLost: true, now: Self.now)
                #expect(step == .remove(tokens, .keyLost))
                let busy = TokenError(.busy, "")
                #expect(renewal.unable(busy, now: Self.now) == .fail(busy))
                #expect(renewal.removed(.keyLost) == session.map { .authorize($0) } ?? signIn(.keyLost))
            }
        }
        // Tokens of another sign-in go because of that, whatever became of their key.
        let tokens = try Self.tokens(600, refresh: true)
        var renewal = TokenRenewal(margin: 60, leeway: 30)
        let step = renewal.loaded(tokens: tokens, session: Self.other, isKeyLost: true, now: Self.now)
        #expect(step == .remove(tokens, .orphaned))
    }

    @Test("A token whose end is unknown is used until it is refused, and a resource's word removes nothing")
    func endless() throws {
        let tokens = try Self.tokens(nil, refresh: true)
        #expect(decide(tokens, Self.mine) == .use(tokens))
        #expect(decide(tokens, Self.mine, rejected: Secret("A")) == .refresh(tokens, refreshToken: Secret("R")))
        #expect(decide(tokens, Self.mine, rejected: Secret("B")) == .use(tokens))
        let plain = try Self.tokens(nil, refresh: false)
        #expect(decide(plain, nil, rejected: Secret("A")) == signIn(.accessTokenRejected))
    }

    @Test("Tokens of another session are never used, not even to refresh")
    func otherSession() throws {
        for refresh in [true, false] {
            let others = try Self.tokens(600, refresh: refresh)
            #expect(decide(others, Self.other) == .remove(others, .orphaned))
            let nobodys = try Self.tokens(600, refresh: refresh, of: nil)
            #expect(decide(nobodys, Self.mine) == .remove(nobodys, .orphaned))
        }
    }

    @Test(
        "Tokens from the future are renewed: the clock went back, so nobody knows how old they are",
        arguments: [(30, true), (31, false), (86_400, false)] as [(Int64, Bool)])
    func future(seconds: Int64, good: Bool) throws {
        let tokens = try Self.tokens(600 + seconds, refresh: true, age: -seconds)
        #expect(decide(tokens, Self.mine) == (good ? .use(tokens) : .refresh(tokens, refreshToken: Secret("R"))))
        let plain = try Self.tokens(600 + seconds, refresh: false, age: -seconds)
        #expect(decide(plain, nil) == .use(plain))
    }

    @Test("A store that never stops changing ends in an error that may pass")
    func changing() throws {
        var renewal = TokenRenewal(margin: 60, leeway: 30)
        let tokens = try Self.tokens(-1, refresh: true)
        var step = TokenRenewal.Step.authorize(Self.mine)
        for _ in 0..<7 { step = renewal.loaded(tokens: tokens, session: Self.mine, now: Self.now) }
        guard case .fail(let error) = step else { throw TokenError(.busy, "\(step)") }
        #expect(error.code == .busy && error.isTransient)
    }
}
