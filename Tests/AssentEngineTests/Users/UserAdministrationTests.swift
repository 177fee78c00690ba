import AssentCore
import AssentOTP
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Administration of users")
struct UserAdministrationTests {
    /// A realm with an administrator, Ana of the fixture, and cheap passwords.
    private struct World {
        let fixture: ProviderFixture
        let passwords: Passwords
        let users: UserAdministration
        let admin: LiveSession

        init() async throws {
            fixture = try await ProviderFixture()
            passwords = Passwords(fixture.context, policy: PasswordPolicy(logN: 4))
            let administration = Administration(fixture.context)
            users = UserAdministration(administration, passwords: passwords)
            let root = try #require(
                try await Users(fixture.context).create(
                    username: "root", realm: "/alpha", passwordHash: nil, roles: [.admin]))
            let token = try await Sessions(fixture.context).begin(
                userID: root.id, realm: "/alpha", limits: ProviderFixture.longSession
            ).token
            admin = try #require(try await Sessions(fixture.context).live(token: token))
        }

        func check(_ username: String, _ password: String) async throws -> Passwords.Check {
            try await passwords.check(username: username, password: Secret(password), realm: "/alpha")
        }

        func events(_ event: AuditEvent) async throws -> [AuditRecord] {
            try await AuditLog(fixture.context).newest(100).filter { $0.event == event }
        }
    }

    @Test("A user who was made signs in with password and code, and is in the list")
    func add() async throws {
        let world = try await World()
        let made = try await world.users.add(
            .init("ben", password: Secret("first one"), roles: [.auditor], withSecondFactor: true), by: world.admin)
        let totp = try #require(made)
        guard case .right(let ben) = try await world.check("ben", "first one") else {
            Issue.record("the password is wrong")
            return
        }
        #expect(ben.roles == [.auditor] && ben.isActive)
        let code = totp.code(at: world.fixture.clock.now)
        #expect(try await OneTimePasswords(world.fixture.context).verify(code, user: ben) == .accepted)
        let bare = try await world.users.add(.init("cid", password: nil), by: world.admin)
        #expect(bare == nil)
        let listed = try await world.users.list(limit: 100, by: world.admin)
        #expect(listed.map(\.user.username) == ["ana", "ben", "cid", "root"])
        #expect(listed.map(\.hasPassword) == [false, true, false, false])
        #expect(listed.map(\.hasSecondFactor) == [false, true, false, false])
        let next = try await world.users.list(after: "ben", limit: 1, by: world.admin)
        #expect(next.map(\.user.username) == ["cid"])
        #expect(try await world.events(.adminCreate).map(\.outcome) == [.success, .success])
        #expect(try await world.events(.adminUsers).count == 2)
    }

    @Test("A name is taken in whatever case, also for two who want it at once, and the refusal is on record")
    func names() async throws {
        let world = try await World()
        let spellings = ["Ben", "ben", "BEN", "bEn"]
        let made = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<20 {
                let name = spellings[index % spellings.count]
                group.addTask {
                    do {
                        _ = try await world.users.add(.init(name, password: nil), by: world.admin)
                        return true
                    } catch {
                        return false
                    }
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(made == 1)
        #expect(try await world.events(.adminCreate).count { $0.outcome == .refused && $0.reason == "exists" } == 19)
        await #expect(throws: EngineError(.exists)) {
            try await world.users.add(.init("ANA", password: nil), by: world.admin)
        }
        for bad in [
            "", "a b", "a,b", "a=b", "ä", "a\n", String(repeating: "a", count: 101), ".", "..", "/", "a/b", #"a\b"#,
            "*",
            "a?", "a#b", "%2e",
        ] {
            await #expect(throws: EngineError.self) {
                try await world.users.add(.init(bad, password: nil), by: world.admin)
            }
        }
        await #expect(throws: EngineError.self) {
            try await world.users.add(.init("dora", password: Secret("")), by: world.admin)
        }
        #expect(try await world.users.list(limit: 100, by: world.admin).count == 3)
    }

    @Test(
        "A password that is short, common or the name itself is refused, for a new user and an old one",
        arguments: ["a", "1234567", "PassWord123", "aaaaaaaaaa", "ANA-maria"])
    func rules(password: String) async throws {
        let world = try await World()
        _ = try await world.users.add(.init("ana-maria", password: nil), by: world.admin)
        await #expect(throws: EngineError.self) {
            try await world.users.setPassword(Secret(password), of: "ana-maria", by: world.admin)
        }
        await #expect(throws: EngineError.self) {
            try await world.users.add(
                .init(password == "ANA-maria" ? "ana-Maria" : "eve", password: Secret(password)), by: world.admin)
        }
        #expect(try await world.users.list(limit: 100, by: world.admin).allSatisfy { !$0.hasPassword })
    }

    @Test("Eight characters are enough, whichever they are, and the operator may ask for more")
    func length() {
        #expect(PasswordRequirements().fault(in: Secret("öß 你好 ab"), of: "ana") == nil)
        #expect(
            PasswordRequirements(minLength: 15).fault(in: Secret("correct horse"), of: "ana")?.contains("15") == true)
        #expect(
            PasswordRequirements(minLength: 1).fault(in: Secret("b"), of: "ana") != nil, "one character over and over")
    }

    @Test("A new password ends sessions and grants, also for offline access, and the old one is wrong")
    func password() async throws {
        let world = try await World()
        let fixture = world.fixture
        let tokens = try await fixture.tokens()
        try await world.users.setPassword(Secret("a new one"), of: "ana", by: world.admin)
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken) == nil)
        _ = try #require(tokens.refreshToken)
        await #expect(throws: OAuthError.self) { _ = try await fixture.refresh(tokens.refreshToken) }
        guard case .right = try await world.check("ana", "a new one") else {
            Issue.record("the new password is wrong")
            return
        }
        try await world.users.setPassword(nil, of: "ana", by: world.admin)
        #expect(try await world.check("ana", "a new one") == .wrong)
        #expect(try await world.events(.adminPassword).count == 2)
        await #expect(throws: EngineError(.notFound)) {
            try await world.users.setPassword(Secret("x"), of: "nobody", by: world.admin)
        }
    }

    @Test("New one-time passwords take the place of the old ones")
    func secondFactor() async throws {
        let world = try await World()
        let codes = OneTimePasswords(world.fixture.context)
        let ana = world.fixture.user
        let first = try await world.users.renewSecondFactor(of: "ana", by: world.admin)
        let second = try await world.users.renewSecondFactor(of: "ana", by: world.admin)
        let now = world.fixture.clock.now
        #expect(try await codes.verify(first.code(at: now), user: ana, from: "192.0.2.7") == .wrong)
        #expect(try await codes.verify(second.code(at: now), user: ana) == .accepted)
        let refused = try #require(try await world.events(.otpVerify).first)
        #expect(refused.detail["address"] == "192.0.2.7" && refused.detail["username"] == "ana")
        #expect(try await world.events(.adminSecondFactor).count == 2)
    }

    @Test("Unlocking forgets wrong passwords and codes")
    func unlock() async throws {
        let world = try await World()
        let codes = OneTimePasswords(world.fixture.context)
        try await world.users.setPassword(Secret("right one"), of: "ana", by: world.admin)
        let totp = try await world.users.renewSecondFactor(of: "ana", by: world.admin)
        for _ in 0..<11 {
            _ = try await world.check("ana", "wrong")
            _ = try await codes.verify("wrong", user: world.fixture.user)
        }
        #expect(try await world.check("ana", "right one") == .locked)
        let code = totp.code(at: world.fixture.clock.now)
        #expect(try await codes.verify(code, user: world.fixture.user) == .locked)
        try await Administration(world.fixture.context).setActive(true, of: "ana", by: world.admin)
        guard case .right = try await world.check("ana", "right one") else {
            Issue.record("still locked")
            return
        }
        #expect(try await codes.verify(code, user: world.fixture.user) == .accepted)
    }

    @Test("Without the role nothing is done, and each attempt is on record")
    func withoutRole() async throws {
        let world = try await World()
        let ana = world.fixture.session
        let denied = EngineError.forbidden
        await #expect(throws: denied) { try await world.users.list(limit: 1, by: ana) }
        await #expect(throws: denied) { try await world.users.add(.init("eve", password: nil), by: ana) }
        await #expect(throws: denied) { try await world.users.setPassword(Secret("x"), of: "root", by: ana) }
        await #expect(throws: denied) { try await world.users.renewSecondFactor(of: "root", by: ana) }
        let refused = try await AuditLog(world.fixture.context).newest(10).filter { $0.outcome == .refused }
        #expect(Set(refused.map(\.event)) == [.adminUsers, .adminCreate, .adminPassword, .adminSecondFactor])
        #expect(try await Users(world.fixture.context).find(username: "eve", realm: "/alpha") == nil)
    }

    @Test("Whoever follows the audit log is on record, and does not fill it by that")
    func follow() async throws {
        let world = try await World()
        let administration = Administration(world.fixture.context)
        var after: Int64 = 0
        for _ in 0..<5 {
            let records = try await administration.auditRecords(.after(position: after, limit: 100), by: world.admin)
            after = records.last?.position ?? after
        }
        #expect(try await world.events(.auditRead).count <= 2)
        _ = try await world.users.list(limit: 1, by: world.admin)
        let news = try await administration.auditRecords(.after(position: after, limit: 100), by: world.admin)
        #expect(news.map(\.event).contains(.adminUsers))
        #expect(news.map(\.position) == news.map(\.position).sorted { ($0 ?? 0) < ($1 ?? 0) })
    }

    @Test("Audit records are found by user, event and time, and name the user whom they are about")
    func auditFilters() async throws {
        let world = try await World()
        let clock = world.fixture.clock
        _ = try await world.users.add(.init("ben", password: Secret("a long password")), by: world.admin)
        _ = try await world.check("ben", "wrong")
        clock.advance(by: 3600)
        let later = clock.epochSeconds
        _ = try await world.check("ben", "wrong")
        _ = try await world.check("ana", "wrong")
        let log = AuditLog(world.fixture.context)
        func found(_ filter: AuditFilter) async throws -> [AuditRecord] {
            try await log.records(.newest(limit: 100, filter: filter))
        }
        let verify = AuditEvent.passwordVerify.rawValue
        let bens = try await found(AuditFilter(user: "ben", event: verify))
        #expect(bens.count == 2 && bens.allSatisfy { $0.username == "ben" && $0.json["user"] == "ben" })
        let id = try #require(bens.first?.userID)
        #expect(try await found(AuditFilter(user: id, event: verify)) == bens)
        #expect(try await found(AuditFilter(since: later, event: verify)).map(\.username) == ["ana", "ben"])
        #expect(try await found(AuditFilter(since: later, user: "ben", event: verify)).count == 1)
        #expect(try await found(AuditFilter(user: "nobody")).isEmpty)
        let after = try await log.records(
            .after(position: 0, limit: 100, filter: AuditFilter(user: "ben", event: verify)))
        #expect(after == bens.reversed())
    }
}
