import AssentCore
import AssentOTP
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Authentication: faults and leaks")
struct AuthenticationFaultTests {
    @Test(
        "A full database is 503, leaves nothing half done, and the same step goes on when there is room",
        .enabled(if: !TestDatabase.isPostgreSQL, "it fills a SQLite file"))
    func full() async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        let session = try await fixture.signIn()
        let id = try await fixture.transaction(session, journey: "ConfirmByPassword")
        let approval = try await fixture.approve(id, session: session)
        try await fixture.database.limitSize(pages: 1)
        // The pages that are there still have room: it is used up first.
        for _ in 0..<200 {
            guard (try? await fixture.start("Password")) != nil else { break }
        }
        let log = AuditLog(fixture.context)
        for _ in 0..<200 {
            guard (try? await log.write(AuditRecord(AuditEvent(rawValue: "x"), .failed))) != nil else { break }
        }
        let audited = try await fixture.count("audit")
        await #expect(throws: EngineError.unavailable) { try await fixture.start("Password").authID }
        let answer: [JSONValue?] = [.string("ana"), .string(JourneyFixture.password)]
        await #expect(throws: EngineError.unavailable) { try await fixture.answer(page, answer) }
        await #expect(throws: EngineError.unavailable) {
            try await fixture.answer(approval, [nil, nil] + answer, session: session)
        }
        #expect(try await fixture.count("sessions") == 1)
        #expect(try await fixture.count("audit") == audited)
        #expect(try await fixture.state(id) == "IN_PROGRESS")
        try await fixture.database.limitSize(pages: 100_000)
        _ = try await fixture.answer(page, answer).token()
        #expect(try await fixture.answer(approval, [nil, nil] + answer, session: session).token() == session)
        #expect(try await fixture.state(id) == "COMPLETED")
        #expect(try await fixture.count("sessions") == 2)
    }

    @Test(
        "Neither the database nor its log has any secret in it",
        .enabled(if: !TestDatabase.isPostgreSQL, "it looks into a SQLite file"))
    func secretsAtRest() async throws {
        let fixture = try await JourneyFixture()
        let first = try await fixture.start("Login")
        _ = try Page(await fixture.answer(first, [.string("ana"), .string("wrong-guess-8152")]))
        let start = try await fixture.start("Login")
        let second = try Page(await fixture.answer(start, [.string("ana"), .string(JourneyFixture.password)]))
        let code = try fixture.code()
        let token = try await fixture.answer(second, [.string(code)]).token()
        fixture.clock.advance(by: 30)
        let id = try await fixture.transaction(token)
        let page = try await fixture.approve(id, session: token)
        let last = try Page(await fixture.answer(page, [nil, nil, 0], session: token))
        let freshCode = try fixture.code()
        _ = try await fixture.answer(last, [.string(freshCode)], session: token).token()
        let secrets = [
            JourneyFixture.password, "wrong-guess-8152", code, freshCode, token.reveal(), JourneyFixture.seed.reveal(),
            first.authID, start.authID, second.authID, last.authID,
        ]
        var stored: [[UInt8]] = []
        for file in try FileManager.default.contentsOfDirectory(at: fixture.directory, includingPropertiesForKeys: nil)
        {
            stored.append([UInt8](try Data(contentsOf: file)))
        }
        #expect(stored.contains { Self.holds(Array("ana".utf8), $0) })
        for secret in secrets {
            let raw = Array(secret.utf8)
            for form in [raw, Array(Base64URL.encode(raw).utf8), Array(Hex.encode(raw).utf8)] {
                // Six digits may stand in any random bytes by chance; longer values may not.
                #expect(!stored.contains { Self.holds(form, $0) }, "a secret of \(secret.count) characters")
            }
        }
    }

    private static func holds(_ needle: [UInt8], _ haystack: [UInt8]) -> Bool {
        Data(haystack).range(of: Data(needle)) != nil
    }

    @Test("No reply, request or error shows a secret when it is printed")
    func printed() async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        let reply = try await fixture.answer(page, [.string("ana"), .string(JourneyFixture.password)])
        let token = try reply.token().reveal()
        #expect(!"\(reply)".contains(token))
        var dumped = ""
        dump(reply, to: &dumped)
        #expect(!dumped.contains(token))
    }
}
