import AssentCore
import Foundation
import Testing

@testable import AssentTokens

@Suite("The life of an installation's token") struct DeviceTokenLifeTests {
    private typealias Life = DeviceTokenLife
    private let now = Date(timeIntervalSince1970: 1_000_000)
    private let failure = TokenError(.transport, "No network.")

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

    @Test("A token is used until it is about to expire, is refused, or comes from the future", arguments: [
        (seconds: 539.0, rejected: "b", isUsed: true), (540, "b", false), (0, "a", false), (-31, "b", false),
        (-30, "b", true),
    ])
    func wanted(_ row: (seconds: Double, rejected: String, isUsed: Bool)) throws {
        let life = try authenticated()
        let step = life.wanted(rejecting: Secret(row.rejected), now: now.addingTimeInterval(row.seconds))
        #expect(used(step) == (row.isUsed ? "a" : nil))
        #expect((asked(step)?.mayRegister == false) == !row.isUsed)
    }

    @Test("When a renewal fails, the token is used while it is good and was not refused", arguments: [
        (seconds: 599.0, rejected: "b", isUsed: true), (600, "b", false), (1, "a", false),
    ])
    func renewal(_ row: (seconds: Double, rejected: String, isUsed: Bool)) throws {
        var life = try authenticated()
        let ask = Life.Ask(scopes: ["app"], era: 0, mayRegister: false)
        let step = life.answered(
            ask, .failed(failure), rejecting: Secret(row.rejected), now: now.addingTimeInterval(row.seconds))
        #expect(used(step) == (row.isUsed ? "a" : nil))
        #expect(failed(step) == (row.isUsed ? nil : .transport))
    }

    @Test("Other scopes are asked for anew; fewer than asked for are refused, and the old token stays")
    func scopes() throws {
        var life = try authenticated()
        let ask = try #require(asked(life.authenticate(["app", "more"], now: now)))
        let narrow = grant("b", ["app", "more"], for: 600)
        #expect(
            failed(life.answered(ask, .granted(narrow, scopes: ["app"]), rejecting: nil, now: now)) == .scopeRefused)
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
        #expect(failed(life.answered(ask, gone, rejecting: nil, now: now)) == .notRegistered)
    }

    @Test("The server's end of the registration ends the token") func ended() throws {
        var life = try authenticated()
        let ask = try #require(asked(life.wanted(rejecting: Secret("a"), now: now)))
        let gone = Life.Answer.ended(TokenError(.notRegistered, "Gone."))
        #expect(failed(life.answered(ask, gone, rejecting: nil, now: now)) == .notRegistered)
        #expect(failed(life.wanted(rejecting: nil, now: now)) == .deviceNotAuthenticated)
    }
}
