import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Failed sign-ins in the audit log")
struct FailedSignInTests {
    private func failures(_ fixture: JourneyFixture) async throws -> [AuditRecord] {
        try await AuditLog(fixture.context).newest(100).filter { $0.event == .passwordVerify }
    }

    @Test("A wrong password is noted with the name and the client's address, also where the journey lets it try again")
    func wrong() async throws {
        let fixture = try await JourneyFixture()
        let check = try await fixture.passwords.check(
            username: "ana", password: Secret("wrong"), realm: "/alpha", from: "203.0.113.7")
        #expect(check == .wrong)
        let record = try #require(try await failures(fixture).first)
        #expect(record.outcome == .refused && record.reason == "wrong")
        #expect(record.realm == "/alpha" && record.userID == fixture.ana.id)
        #expect(record.detail == ["username": "ana", "address": "203.0.113.7"])
    }

    @Test("The name of somebody who does not exist is not noted: it may be a password that was typed into its field")
    func unknown() async throws {
        let fixture = try await JourneyFixture()
        _ = try await fixture.passwords.check(
            username: "hunter2hunter2", password: Secret("x"), realm: "/alpha", from: "203.0.113.7")
        let record = try #require(try await failures(fixture).first)
        #expect(record.reason == "unknownUser" && record.userID == nil)
        #expect(record.detail == ["address": "203.0.113.7"])
    }

    @Test("A right password is no failure")
    func right() async throws {
        let fixture = try await JourneyFixture()
        let check = try await fixture.passwords.check(
            username: "ana", password: Secret(JourneyFixture.password), realm: "/alpha", from: "203.0.113.7")
        #expect(check == .right(fixture.ana))
        #expect(try await failures(fixture).isEmpty)
    }

    @Test("A journey's end is noted with the client's address, and when it failed with the name of somebody who exists")
    func ends() async throws {
        let fixture = try await JourneyFixture()
        let attempts = [("ana", JourneyFixture.password), ("ana", "wrong"), ("hunter2hunter2", "x")]
        for (name, password) in attempts {
            let page = try Page(await fixture.send(type: "service", value: "Password", from: "203.0.113.7"))
            _ = try? await fixture.send(page.answered([.string(name), .string(password)]), from: "203.0.113.7")
        }
        let records = try await AuditLog(fixture.context).newest(100).filter { $0.event == .authenticate }
        #expect(records.map(\.outcome) == [.refused, .refused, .success])
        #expect(
            records.map(\.detail) == [
                ["journey": "Password", "address": "203.0.113.7"],
                ["journey": "Password", "username": "ana", "address": "203.0.113.7"],
                ["journey": "Password", "address": "203.0.113.7"],
            ])
    }
}
