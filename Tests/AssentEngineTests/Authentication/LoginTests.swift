import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine

@Suite("Authentication: signing in")
struct LoginTests {
    @Test("A whole sign-in: password page, code page, session")
    func wholeLogin() async throws {
        let fixture = try await JourneyFixture()
        let first = try await fixture.start("Login")
        #expect(first.content.presentation == PagePresentation(stage: "UsernamePassword", header: "Sign in"))
        #expect(first.types == ["NameCallback", "PasswordCallback"])
        #expect(first.content.prompts == [.name("User Name"), .password("Password")])
        let second = try Page(
            await fixture.answer(first, [.string("ana"), .string(JourneyFixture.password)]))
        #expect(second.types == ["TextInputCallback"])
        #expect(second.authID != first.authID)
        let success = try await fixture.answer(second, [.string(fixture.code())]).success()
        #expect(success.isNewSession)
        #expect(success.successURL == "/console")
        #expect(success.realm == "/alpha")
        let token = try #require(success.token)
        let session = try #require(try await fixture.sessions.live(token: token))
        #expect(session.user == fixture.ana)
        #expect(session.authLevel == 5)
        #expect(session.properties["Service"]?.string == "Login")
        #expect(try await fixture.audited() == ["success -"])
    }

    @Test("Without a name the default journey runs", arguments: [nil, "service", "SERVICE"])
    func defaultJourney(type: String?) async throws {
        let fixture = try await JourneyFixture()
        let page = try Page(await fixture.send(type: type))
        #expect(page.types == ["NameCallback", "PasswordCallback"])
    }

    @Test("A wrong password may be tried again twice, then the journey fails and stays failed")
    func retries() async throws {
        let fixture = try await JourneyFixture()
        var page = try await fixture.start("Login")
        let first = page
        for _ in 0..<2 {
            page = try Page(await fixture.answer(page, [.string("ana"), .string("wrong")]))
        }
        await #expect(throws: EngineError(.loginFailed)) {
            try await fixture.answer(page, [.string("ana"), .string("wrong")])
        }
        // An old page does not bring back its count.
        await expectError(.stepAnsweredDifferently) {
            try await fixture.answer(first, [.string("ana"), .string(JourneyFixture.password)])
        }
        #expect(try await fixture.count("sessions") == 0)
        #expect(try await fixture.audited() == ["refused loginFailure"])
    }

    @Test("An unknown user and a wrong password get the same reply and cost the same work")
    func unknownUser() async throws {
        let fixture = try await JourneyFixture()
        var replies: [String] = []
        var works: [Int] = []
        for name in ["ana", "nobody", "", "ben"] {
            let page = try await fixture.start("Password")
            let before = fixture.derivations.count
            do {
                _ = try await fixture.answer(page, [.string(name), .string("wrong")])
            } catch let error as EngineError {
                replies.append("\(error.code) \(error.detail) \(error.subject ?? "-")")
            }
            works.append(fixture.derivations.count - before)
        }
        #expect(replies == Array(repeating: "loginFailed The journey ended without success. -", count: 4))
        #expect(works == [1, 1, 1, 1])
    }

    @Test("A name is shut after too many attempts, existing or not, without looking at the password")
    func limitedNames() async throws {
        let fixture = try await JourneyFixture(signIn: SignInLimits(attempts: 3, window: 300))
        for name in ["ana", "nobody"] {
            for _ in 0..<3 {
                await expectError(.loginFailed) { try await fixture.signIn(name, password: "wrong") }
            }
            let before = fixture.derivations.count
            await expectError(.accountLocked) { try await fixture.signIn(name) }
            #expect(fixture.derivations.count == before)
        }
        fixture.clock.advance(by: 300)
        _ = try await fixture.signIn("ana")
    }

    @Test("A right password of a user who was shut out gives no session")
    func inactive() async throws {
        let fixture = try await JourneyFixture()
        try await Users(fixture.context).setActive(false, userID: fixture.ana.id)
        await #expect(throws: EngineError(.userInactive)) {
            try await fixture.signIn()
        }
        #expect(try await fixture.count("sessions") == 0)
    }

    @Test("With noSession there is no token and no session")
    func noSession() async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password", noSession: true)
        let reply = try await fixture.answer(page, [.string("ana"), .string(JourneyFixture.password)])
        #expect(try reply.success().token == nil)
        #expect(try reply.success().successURL == "/console")
        #expect(try await fixture.count("sessions") == 0)
        #expect(try await fixture.audited() == ["success -"])
    }

    @Test("noSession counts on whatever step it comes, and goes on counting")
    func lateNoSession() async throws {
        let fixture = try await JourneyFixture()
        let last = try await fixture.start("Password")
        let reply = try await fixture.send(
            last.answered([.string("ana"), .string(JourneyFixture.password)]), noSession: true)
        #expect(try reply.success().token == nil)
        let first = try await fixture.start("Login", noSession: false)
        let code = try Page(
            await fixture.send(
                first.answered([.string("ana"), .string(JourneyFixture.password)]), noSession: true))
        #expect(try await fixture.answer(code, [.string(fixture.code())]).success().token == nil)
        #expect(try await fixture.count("sessions") == 0)
    }

    @Test("Name and password may come in header fields of the first request, as encoded words too")
    func zeroPage() async throws {
        let fixture = try await JourneyFixture()
        let plain = ["X-OpenAM-Username": "ana", "X-OpenAM-Password": JourneyFixture.password]
        let encoded = [
            "X-OpenAM-Username": "=?UTF-8?B?YW5h?=", "X-OpenAM-Password": "=?utf-8?q?correct_horse=207419?=",
        ]
        for headers in [plain, encoded] {
            _ = try await fixture.send(type: "service", value: "ZeroPage", headers: headers).token()
        }
        // SQLite would look for "ana", and count the failures of "ana\0x".
        let hidden = ["X-OpenAM-Username": "=?utf-8?b?YW5hAHg=?=", "X-OpenAM-Password": JourneyFixture.password]
        for headers in [[:], ["X-OpenAM-Username": "ana", "X-OpenAM-Password": "wrong"], hidden] {
            await expectError(.loginFailed) {
                try await fixture.send(type: "service", value: "ZeroPage", headers: headers)
            }
        }
    }

    @Test("An encoded word is bounded as the field is that it stands in: many marks in a row are slow to compare")
    func encodedMarks() {
        for (count, isTaken) in [(64, true), (65, false), (1_000, false)] {
            let marks = "e" + String(repeating: "\u{301}", count: count)
            let base64 = Data(marks.utf8).base64EncodedString()
            let quoted = marks.utf8.map { "=" + Hex.encode([$0]) }.joined()
            for word in ["=?utf-8?b?\(base64)?=", "=?utf-8?q?\(quoted)?="] {
                #expect(ZeroPageLoginNode.decoded(word) == (isTaken ? marks : nil), "\(count)")
            }
        }
    }

    @Test("A journey without anybody in it gives nobody a session")
    func nobody() async throws {
        let fixture = try await JourneyFixture()
        await expectError(.loginFailed) { try await fixture.send(type: "service", value: "Silent") }
        #expect(try await fixture.count("sessions") == 0)
    }

    @Test(
        "What cannot be run is refused",
        arguments: [
            ("service", "Nothing", .unknownJourney), ("service", "login", .unknownJourney),
            ("service", "Confirm", .unknownJourney), ("module", "x", .unknownIndexType),
            ("transaction", "x", .transactionUnreadable), ("transaction", "", .invalidRequest),
            ("level", "9", .unknownJourney), ("composite_advice", AdviceXML.service("/beta:Login"), .unknownRealm),
        ] as [(String, String, EngineError.Code)])
    func refused(type: String, value: String, code: EngineError.Code) async throws {
        let fixture = try await JourneyFixture()
        await expectError(code) { try await fixture.send(type: type, value: value) }
    }

    @Test("An unknown realm, a suspended id and a broken advice are refused")
    func refusedOtherwise() async throws {
        let fixture = try await JourneyFixture()
        await expectError(.unknownRealm, about: "/nowhere") { try await fixture.send(realm: "/nowhere") }
        let suspended = await #expect(throws: EngineError.self) {
            try await fixture.authentication.authenticate(
                AuthenticateRequest(realm: "/alpha", suspendedID: "x"))
        }
        #expect(suspended?.code == .suspendedJourneyUnknown)
        let broken = await #expect(throws: EngineError.self) {
            try await fixture.send(type: "composite_advice", value: "<Advices><!DOCTYPE x></Advices>")
        }
        #expect(broken?.code == .invalidRequest)
    }
}

/// Expects an ``EngineError`` of this code; with `detail`, one that says exactly that.
func expectError(
    _ code: EngineError.Code, _ detail: String? = nil, about subject: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> some Sendable
) async {
    do {
        _ = try await body()
        Issue.record("nothing was thrown", sourceLocation: sourceLocation)
    } catch let error as EngineError {
        #expect(error.code == code, sourceLocation: sourceLocation)
        if let detail { #expect(error.detail == detail, sourceLocation: sourceLocation) }
        if let subject { #expect(error.subject == subject, sourceLocation: sourceLocation) }
    } catch {
        Issue.record("\(error)", sourceLocation: sourceLocation)
    }
}

enum AdviceXML {
    static func transaction(_ id: String) -> String { make("TransactionConditionAdvice", id) }

    static func service(_ name: String) -> String { make("AuthenticateToServiceConditionAdvice", name) }

    static func make(_ name: String, _ value: String) -> String {
        "<Advices><AttributeValuePair><Attribute name=\"\(name)\"/><Value>\(value)</Value></AttributeValuePair></Advices>"
    }
}
