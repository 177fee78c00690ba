import AssentCore
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@testable import AssentTokens

/// Stands still, and knows how often it was looked at.
private struct CountingClock: WallClock {
    static let time = Date(timeIntervalSince1970: 1_767_225_600)

    private let looks = Locked(0)

    var count: Int { looks.withLock { $0 } }

    var now: Date {
        looks.withLock { $0 += 1 }
        return Self.time
    }

    func sleep(until deadline: Date) async throws {}
}

@Suite("A remembered user's token") struct ImplicitTokensTests {
    private let clock = ManualClock()
    private let ring = KeyRing()
    private let provider: FakeProvider

    init() throws {
        (provider, _) = try FakeProvider.registering(clock: clock)
        provider.change { $0.tokenType = "DPoP" }
    }

    /// An installation that is registered.
    private func manager() async throws -> TokenManager {
        let manager = try provider.installation(ring)
        _ = try await manager.registration?.register()
        return manager
    }

    private func forms() throws -> [FormItems] {
        try provider.sent("/access_token").map { try FormEncoding.parse($0.body) }
    }

    private func sign(_ facts: LoginFacts) -> Secret { Secret("login-\(facts.time)") }

    @Test("Fifty tasks send one login, by the registered client, with a proof; nothing is stored")
    func race() async throws {
        let manager = try await manager()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    try await manager.implicit.authenticate(user: "u", scopes: ["greeting"]) { sign($0) }
                }
            }
            try await group.waitForAll()
        }
        let forms = try forms()
        #expect(forms.count == 1)
        let form = try #require(forms.first)
        #expect(form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer" && form["scope"] == "greeting")
        #expect(form["client_assertion"] != nil && form["assertion"]?.hasPrefix("login-") == true)
        #expect(provider.sent("/access_token").first?.field("DPoP") != nil)
        #expect(try await manager.storedTokens() == nil)
        #expect(try await manager.implicit.token(rejecting: nil) != nil)
    }

    @Test("Before an authentication there is no token, and after the end of the container none either")
    func missing() async throws {
        let manager = try await manager()
        let before = await #expect(throws: TokenError.self) { try await manager.implicit.token(rejecting: nil) }
        #expect(before?.code == .implicitUserMissing)
        try await manager.implicit.authenticate(user: "u", scopes: []) { sign($0) }
        manager.implicit.end()
        let after = await #expect(throws: TokenError.self) { try await manager.implicit.token(rejecting: nil) }
        #expect(after?.code == .implicitUserMissing)
    }

    @Test("Another user's authentication takes the place of the first one's")
    func users() async throws {
        let manager = try await manager()
        try await manager.implicit.authenticate(user: "a", scopes: []) { _ in Secret("by-a") }
        let first = try #require(try await manager.implicit.token(rejecting: nil))
        try await manager.implicit.authenticate(user: "b", scopes: []) { _ in Secret("by-b") }
        let second = try #require(try await manager.implicit.token(rejecting: nil))
        #expect(first.value != second.value)
        let third = try #require(try await manager.implicit.token(rejecting: second.value))
        // A refused call is sent once more with a token of the same user alone.
        let (one, two, three) = (try #require(first.owner), try #require(second.owner), try #require(third.owner))
        #expect(!two.isSame(as: one) && three.isSame(as: two))
        #expect(try forms().compactMap { $0["assertion"] } == ["by-a", "by-b", "by-b"])
    }

    @Test("A call of one remembered user that waits for a token gets none of another who is authenticated meanwhile")
    func userChange() async throws {
        let provider = try await manager().provider
        let (gate, opens) = AsyncStream.makeStream(of: Void.self)
        let isAsked = Locked(false)
        let time = CountingClock()
        let configuration = try TokenConfiguration(issuer: issuer, clientID: "bank-app", redirectURI: redirectURI)
        let tokens = MemoryTokens(
            configuration, provider: provider, missing: MemoryTokenLife.notImplicit, clock: time
        ) { ask in
            let user = ask.user ?? ""
            if user == "b" {
                isAsked.withLock { $0 = true }
                for await _ in gate { break }
            }
            let grant = MemoryTokenLife.Grant(
                token: AccessToken(bearer: Secret("of-\(user)")), scopes: ask.scopes, expiresAt: nil,
                obtainedAt: CountingClock.time, user: ask.user)
            return (grant, ask.scopes)
        }
        try await tokens.authenticate(scopes: [], user: "a")
        let other = Task { try await tokens.authenticate(scopes: [], user: "b") }
        while !isAsked.withLock({ $0 }) { await Task.yield() }
        let before = time.count
        let waiting = Task { try await tokens.token(rejecting: Secret("of-a")).value }
        // It looks at the clock when it has begun.
        while time.count == before { await Task.yield() }
        opens.finish()
        try await other.value
        await #expect(throws: TokenError.like(.sessionChanged)) { try await waiting.value }
        let next = try await tokens.token(rejecting: nil)
        #expect(next.value == Secret("of-b"))
    }

    @Test("A request that another one has answered between the decision to send it and its start is not sent")
    func answeredMeanwhile() async throws {
        let provider = try await manager().provider
        let configuration = try TokenConfiguration(issuer: issuer, clientID: "bank-app", redirectURI: redirectURI)
        let asked = Locked(0)
        let tokens = MemoryTokens(
            configuration, provider: provider, missing: MemoryTokenLife.notImplicit, clock: CountingClock()
        ) { ask in
            let number = asked.withLock { count in
                count += 1
                return count
            }
            let grant = MemoryTokenLife.Grant(
                token: AccessToken(bearer: Secret("token-\(number)")), scopes: ask.scopes, expiresAt: nil,
                obtainedAt: CountingClock.time, user: ask.user)
            return (grant, ask.scopes)
        }
        try await tokens.authenticate(scopes: [], user: "a")
        // What this task was told was so before that answer had come.
        let earlier = MemoryTokenLife(margin: 0, leeway: 0)
        let isDecided = Locked(false)
        let grant = try await tokens.grant(rejecting: nil) { life, now in
            let isFirst = isDecided.withLock { decided in
                defer { decided = true }
                return !decided
            }
            return (isFirst ? earlier : life).authenticate([], user: "a", now: now)
        }
        #expect(isDecided.withLock { $0 })
        #expect(grant.token.value == Secret("token-1"))
        #expect(asked.withLock { $0 } == 1)
    }

    @Test("Of nine users who want to be the one user, only the one loses who was not used for the longest time")
    func evicted() async throws {
        let manager = try await manager()
        let names = (0...8).map { "u\($0)" }
        for name in names.dropLast() {
            try await manager.implicit.authenticate(user: name, scopes: []) { _ in Secret("by-\(name)") }
        }
        let last = try #require(try await manager.implicit.token(rejecting: nil)?.value)
        // The ninth one is refused, so that the eighth one stays the user.
        let good = provider.behaviour.withLock { $0.tokenReply }
        provider.change { $0.tokenReply = { _ in .json(400, ["error": "invalid_grant"]) } }
        await #expect(throws: TokenError.self) {
            try await manager.implicit.authenticate(user: "u8", scopes: []) { _ in Secret("by-u8") }
        }
        provider.change { $0.tokenReply = good }
        _ = try await manager.implicit.token(rejecting: last)
        #expect(try forms().last?["assertion"] == "by-u7")
    }

    @Test(
        "A clock that is ten minutes wrong is corrected by the refusal's time, and the login sent once more",
        arguments: [600, -600])
    func clocks(ahead: Int64) async throws {
        let manager = try await manager()
        let date = Self.field(clock.epochSeconds + ahead)
        provider.change { state in
            state.tokenReply = { _ in .json(400, ["error": "invalid_grant"], headers: [.date: date]) }
        }
        let error = await #expect(throws: TokenError.self) {
            try await manager.implicit.authenticate(user: "u", scopes: []) { sign($0) }
        }
        #expect(error?.oauthError == "invalid_grant")
        let times = try forms().compactMap { $0["assertion"] }
        #expect(times == ["login-\(clock.epochSeconds)", "login-\(clock.epochSeconds + ahead)"])
    }

    @Test("What the server says of the login is not taken for the clock's fault", arguments: LoginRefusalHint.allCases)
    func refused(refusal: LoginRefusalHint) async throws {
        let manager = try await manager()
        let date = Self.field(clock.epochSeconds + 600)
        provider.change { state in
            state.tokenReply = { _ in
                .json(
                    400, ["error": "invalid_grant", "assent_error": .string(refusal.rawValue)],
                    headers: [.date: date])
            }
        }
        let error = await #expect(throws: TokenError.self) {
            try await manager.implicit.authenticate(user: "u", scopes: []) { sign($0) }
        }
        #expect(error?.loginRefusal == refusal)
        // The app hears no more than this.
        #expect(error?.detail == refusal.words.detail && error?.suggestion == refusal.words.suggestion)
        #expect(try forms().count == 1)
    }

    @Test("A field Date is read in its one form and no other")
    func dates() {
        #expect(HTTPDate("Sun, 06 Nov 1994 08:49:37 GMT")?.seconds == 784_111_777)
        #expect(HTTPDate("Thu, 01 Jan 1970 00:00:00 GMT")?.seconds == 0)
        #expect(HTTPDate("Tue, 29 Feb 2000 12:00:00 GMT")?.seconds == 951_825_600)
        for bad in [
            "", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 99999 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        ] {
            #expect(HTTPDate(bad) == nil, "\(bad)")
        }
    }

    private static func field(_ seconds: Int64) -> String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = .gmt
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format.string(from: Date(timeIntervalSince1970: TimeInterval(seconds)))
    }
}
