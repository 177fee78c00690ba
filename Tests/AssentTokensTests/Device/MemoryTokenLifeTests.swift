import AssentCore
import Foundation
import Testing

@testable import AssentTokens

@Suite("The life of an installation's token") struct MemoryTokenLifeTests {
    private typealias Life = MemoryTokenLife
    private let now = Date(timeIntervalSince1970: 1_000_000)

    struct Row: Sendable {
        let seconds: Double
        let rejected: String
        let isUsed: Bool
    }

    private static let calls = [
        Row(seconds: 539, rejected: "b", isUsed: true), Row(seconds: 540, rejected: "b", isUsed: false),
        Row(seconds: 0, rejected: "a", isUsed: false), Row(seconds: -31, rejected: "b", isUsed: false),
        Row(seconds: -30, rejected: "b", isUsed: true),
    ]

    private static let failures = [
        Row(seconds: 599, rejected: "b", isUsed: true), Row(seconds: 600, rejected: "b", isUsed: false),
        Row(seconds: 1, rejected: "a", isUsed: false),
    ]

    private func grant(_ name: String = "a", _ scopes: Set<String> = ["app"], for seconds: TimeInterval) -> Life.Grant {
        Life.Grant(
            token: AccessToken(bearer: Secret(name)), scopes: scopes, expiresAt: now.addingTimeInterval(seconds),
            obtainedAt: now)
    }

    private func asked(_ step: Life.Step) -> Life.Ask? {
        if case .ask(let ask) = step { return ask }
        return nil
    }

    private func used(_ step: Life.Step) -> String? {
        if case .use(let grant) = step { return grant.token.value.reveal() }
        return nil
    }

    private func failed(_ step: Life.Step) -> TokenError.Code? {
        if case .fail(let error) = step { return error.code }
        return nil
    }

    private func authenticated(for seconds: TimeInterval = 600) throws -> Life {
        var life = Life(margin: 60, leeway: 30)
        let ask = try #require(asked(life.authenticate(["app"], now: now)))
        #expect(ask.mayRegister)
        let step = life.answered(ask, .granted(grant(for: seconds), scopes: ["app"]), rejecting: nil, now: now)
        #expect(used(step) == "a")
        return life
    }

    @Test("A call asks for nothing before the app has") func silent() {
        #expect(failed(Life(margin: 60, leeway: 30).wanted(rejecting: nil, now: now)) == .deviceNotAuthenticated)
    }

    @Test("A token is used until it is about to expire, is refused, or comes from the future", arguments: calls)
    func wanted(_ row: Row) throws {
        let life = try authenticated()
        let step = life.wanted(rejecting: Secret(row.rejected), now: now.addingTimeInterval(row.seconds))
        let expected: String? = row.isUsed ? "a" : nil
        #expect(used(step) == expected)
        let asks = asked(step)?.mayRegister == false
        #expect(asks == !row.isUsed)
    }

    @Test("A call's answer that comes after the app has asked for other scopes does not bring the old ones back")
    func late() throws {
        var life = try authenticated(for: 0)
        let stale = try #require(asked(life.wanted(rejecting: nil, now: now)))
        let other = try #require(asked(life.authenticate(["other"], now: now)))
        let new = grant("b", ["other"], for: 600)
        #expect(used(life.answered(other, .granted(new, scopes: ["other"]), rejecting: nil, now: now)) == "b")
        let old = grant("c", for: 600)
        #expect(used(life.answered(stale, .granted(old, scopes: ["app"]), rejecting: nil, now: now)) == "c")
        #expect(used(life.wanted(rejecting: nil, now: now)) == "b")
    }

    @Test("When a renewal fails, the token is used while it is good and was not refused", arguments: failures)
    func renewal(_ row: Row) throws {
        var life = try authenticated()
        let ask = Life.Ask(scopes: ["app"], era: 0, mayRegister: false)
        let step = life.answered(
            ask, .failed(TokenError(.transport, "")), rejecting: Secret(row.rejected),
            now: now.addingTimeInterval(row.seconds))
        let expected: String? = row.isUsed ? "a" : nil
        #expect(used(step) == expected)
        let failure: TokenError.Code? = row.isUsed ? nil : .transport
        #expect(failed(step) == failure)
    }

    @Test("Other scopes are asked for anew; fewer than asked for are refused, and the old token stays")
    func scopes() throws {
        var life = try authenticated()
        let ask = try #require(asked(life.authenticate(["app", "more"], now: now)))
        let narrow = grant("b", ["app", "more"], for: 600)
        let step = life.answered(ask, .granted(narrow, scopes: ["app"]), rejecting: nil, now: now)
        #expect(failed(step) == .scopeRefused)
        #expect(used(life.wanted(rejecting: nil, now: now)) == "a")
    }

    @Test("After the end nothing of before counts, also what comes late") func end() throws {
        var life = try authenticated()
        let ask = try #require(asked(life.wanted(rejecting: Secret("a"), now: now)))
        life.end()
        #expect(failed(life.wanted(rejecting: nil, now: now)) == .deviceNotAuthenticated)
        let late = life.answered(ask, .granted(grant("b", for: 600), scopes: ["app"]), rejecting: nil, now: now)
        #expect(failed(late) == .deviceNotAuthenticated)
        #expect(failed(life.wanted(rejecting: nil, now: now)) == .deviceNotAuthenticated)
        let gone = Life.Answer.ended(TokenError(.notRegistered, "Gone."))
        let last = life.answered(ask, gone, rejecting: nil, now: now)
        #expect(failed(last) == .notRegistered)
    }

    @Test("The server's end of the registration ends the token") func ended() throws {
        var life = try authenticated()
        let ask = try #require(asked(life.wanted(rejecting: Secret("a"), now: now)))
        let gone = Life.Answer.ended(TokenError(.notRegistered, "Gone."))
        let last = life.answered(ask, gone, rejecting: nil, now: now)
        #expect(failed(last) == .notRegistered)
        #expect(failed(life.wanted(rejecting: nil, now: now)) == .deviceNotAuthenticated)
    }
}
