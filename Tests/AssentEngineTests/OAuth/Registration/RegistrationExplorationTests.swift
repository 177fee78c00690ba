import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

/// Tries every combination of faults of a node at which an instance registers, changes its key or ends, with what
/// comes to another node in between, on the real engine and a real database.
@Suite("One instance of an app, two nodes, and every way in which a write can fail")
struct RegistrationExplorationTests {
    private typealias Act = RegistrationAct
    private typealias Fault = NodeDatabase.Fault

    private struct Case: CustomStringConvertible {
        /// What is asked of the first node, and once more while it lives.
        let act: Act
        /// How many instances the initial access token registers.
        let count: Int64
        /// What happens to the first node's writes.
        let first: [Fault]
        /// What is asked of the second node; `nil` for nothing.
        let second: Act?
        /// Before which of the first node's writes.
        let tries: Int

        var description: String {
            "\(act) with a token for \(count), first \(first), second \(second.map { "\($0)" } ?? "-") before \(tries)"
        }
    }

    /// What there is before.
    private struct Scene: Sendable {
        /// The initial access token.
        let token: Secret
        /// The instance; `nil` where it is about to register.
        var registered: ClientRegistration.Registered?
        /// The id of a session that belongs to the instance's key; `nil` where there is none.
        var session: String?
    }

    private struct Node: Sendable {
        let provider: OAuthProvider
        let registrations: RegistrationAdministration
    }

    /// The instance's key, the one that takes its place at the first node, and the one at the second.
    private let keys: [AssertionKey]
    private let fixture: ProviderFixture
    private let admin: LiveSession

    init() async throws {
        keys = [try AssertionKey(), try AssertionKey(), try AssertionKey()]
        fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        admin = try await fixture.administrator()
    }

    // MARK: - Cases

    /// What can happen to the writes of a request and of its repetition.
    private static func faults(of act: Act) -> [[Fault]] {
        // A registration is counted against its limit before it is written.
        let counted: [Fault] = act == .register ? [.none] : []
        var requests = Fault.allCases.map { counted + [$0] }
        if act == .register { requests += Fault.allCases.filter { $0 != Fault.none }.map { [$0] } }
        return requests.flatMap { first -> [[Fault]] in
            guard !first.contains(.crashBefore), !first.contains(.crashAfter) else { return [first] }
            return Fault.allCases.map { first + counted + [$0] }
        }
    }

    private static func cases(of act: Act, count: Int64, against seconds: [Act]) -> [Case] {
        faults(of: act).flatMap { first -> [Case] in
            [Case(act: act, count: count, first: first, second: nil, tries: 0)]
                + seconds.flatMap { second in
                    first.indices.map { Case(act: act, count: count, first: first, second: second, tries: $0) }
                }
        }
    }

    @Test("An initial access token registers as many as it is for, each on record, and no fault uses it up")
    func registrations() async throws {
        let counts: [Int64] = [1, 2]
        try await explore(
            counts.flatMap { Self.cases(of: .register, count: $0, against: [.register, .endByAdministrator]) })
    }

    @Test("A new key and an end are made once or not at all, and an instance that has ended leaves nothing")
    func changesAndEnds() async throws {
        try await explore(
            [Act.change, .end, .endByAdministrator].flatMap {
                Self.cases(of: $0, count: 1, against: [.change, .end, .endByAdministrator, .token])
            })
    }

    private func explore(_ cases: [Case]) async throws {
        // Each is tried on the embedded database; a round trip takes longer.
        for index in stride(from: 0, to: cases.count, by: TestDatabase.isPostgreSQL ? 11 : 1) {
            try await run(cases[index])
        }
    }

    @Test("A connection that is lost after any statement of a transaction leaves everything as it was")
    func cut() async throws {
        for act in [Act.register, .change, .end, .endByAdministrator] {
            var (cut, statements) = (0, 1)
            while cut <= statements {
                let scene = try await scene(before: act, count: 1)
                let database = CutDatabase(fixture.database, after: cut)
                let node = try node(database)
                let before = try await snapshot()
                let lost = await RegistrationReply { try await ask(act, scene, by: keys[1], at: node) }
                #expect(lost == .unavailable, "\(act) after \(cut)")
                #expect(try await snapshot() == before, "\(act) after \(cut)")
                let again = await RegistrationReply { try await ask(act, scene, by: keys[1], at: healthy) }
                #expect(again == .done(1), "\(act) after \(cut)")
                statements = database.statementCount
                #expect(statements > 1, "\(act) is one transaction with its audit record")
                #expect(try await end().isEmpty)
                cut += 1
            }
        }
    }

    // MARK: - One case

    private func run(_ each: Case) async throws {
        let start = try await fixture.registrationRecords()
        let scene = try await scene(before: each.act, count: each.count)
        var answers = try await race(each, scene)
        if scene.registered != nil { answers.append(RegistrationAnswer(act: .register, reply: .done(1))) }
        let records = try await fixture.registrationRecords().merging(start) { $0 - $1 }
        var faults = Self.contradictions(in: answers, records, each)
        faults += try await fixture.registrationFaults(records)
        if let registered = scene.registered {
            faults += try await keyFaults(of: registered.id, isChanged: records[.registrationUpdate] != 0)
            faults += try await remainders(of: registered.id, scene, records)
        } else {
            faults += try await tokenFaults(each, scene, answers, records[.registrationCreate, default: 0])
        }
        faults += try await end()
        #expect(faults.isEmpty, "\(each): \(answers)")
    }

    /// What both nodes answer.
    private func race(_ each: Case, _ scene: Scene) async throws -> [RegistrationAnswer] {
        let answers = Locked<[RegistrationAnswer]>([])
        let second = try healthy
        let database = NodeDatabase(fixture.database, each.first) { write in
            guard write == each.tries, let act = each.second else { return }
            let reply = await RegistrationReply { try await ask(act, scene, by: keys[2], at: second) }
            answers.withLock { $0.append(RegistrationAnswer(act: act, reply: reply)) }
        }
        let node = try node(database)
        for _ in 0..<2 where !database.isDead {
            let reply = await RegistrationReply(from: database) {
                try await ask(each.act, scene, by: keys[1], at: node)
            }
            answers.withLock { $0.append(RegistrationAnswer(act: each.act, reply: reply)) }
        }
        return answers.withLock { $0 }
    }

    /// Where the answers and the audit log do not fit together.
    private static func contradictions(
        in answers: [RegistrationAnswer], _ records: [AuditEvent: Int64], _ each: Case
    ) -> [String] {
        var faults: [String] = []
        for (event, done) in records {
            let replies = answers.filter { $0.act.event == event }.map(\.reply)
            let told = replies.reduce(Int64(0)) { $0 + $1.count }
            let unknown = Int64(replies.count { $0.mayBeDone })
            if done < told || done > told + unknown {
                faults.append("\(event.rawValue): \(done) done, \(told) told, \(unknown) said to be unknown")
            }
        }
        let isTokenUsed = records[.registrationCreate, default: 0] == each.count
        let isVoid = answers.contains { $0.act == .endByAdministrator }
        let isOther = records[.registrationUpdate, default: 0] + records[.registrationEnd, default: 0] > 0
        for answer in answers {
            switch answer.reply {
            case .failed(let text): faults.append("said: \(text)")
            case .unknown where !each.first.contains(.doneUnknown): faults.append("said to be unknown, and is not")
            case .refused(let code):
                let expected: String =
                    switch answer.act {
                    case .endByAdministrator: "notFound"
                    case .token: "invalid_client"
                    case .register, .change, .end: "invalid_token"
                    }
                let isRight = answer.act == .register ? isTokenUsed || isVoid : isOther
                if code != expected || !isRight { faults.append("\(answer.act) refused: \(code)") }
            default: break
            }
        }
        return faults
    }

    /// What is wrong with the initial access token, which `made` instances have used.
    private func tokenFaults(
        _ each: Case, _ scene: Scene, _ answers: [RegistrationAnswer], _ made: Int64
    ) async throws -> [String] {
        var faults: [String] = []
        let isVoid = answers.contains { $0.act == .endByAdministrator }
        let left = try await fixture.database.run(
            .read("SELECT uses_left FROM registration_tokens WHERE hash = \(TokenHash.of(scene.token))")
        ).first?.integer("uses_left")
        let expected: Int64? = isVoid ? nil : each.count - made
        if left != expected { faults.append("\(made) made, \(left ?? -1) uses left") }
        let next = await RegistrationReply { try await ask(.register, scene, by: keys[0], at: healthy) }
        let right: RegistrationReply = !isVoid && made < each.count ? .done(1) : .refused("invalid_token")
        if next != right { faults.append("then it is \(next)") }
        return faults
    }

    /// What is wrong with the key of an instance, which may have ended.
    private func keyFaults(of id: String, isChanged: Bool) async throws -> [String] {
        var faults: [String] = []
        let row = try await fixture.database.run(
            .read("SELECT key_thumbprint FROM client_instances WHERE id = \(id)")
        ).first
        let current = try row?.text("key_thumbprint")
        for (index, key) in keys.enumerated() {
            let isCurrent = key.jwk.thumbprint == current
            let refused = try await fixture.refusalCode { _ = try await fixture.ownToken(of: id, key) }
            let expected: String? = isCurrent ? nil : "invalid_client"
            if refused != expected { faults.append("key \(index): \(refused ?? "good")") }
            if isCurrent, isChanged != (index > 0) { faults.append("key \(index) is not what the audit log says") }
        }
        return faults
    }

    /// What is wrong with what belongs to an instance besides its grants.
    private func remainders(
        of id: String, _ scene: Scene, _ records: [AuditEvent: Int64]
    ) async throws -> [String] {
        let isEnded = records[.registrationEnd] != 0
        let consents = try await fixture.count("consents", where: "client_id = '\(id)'")
        let sessions = try await fixture.count("sessions", where: "id = '\(scene.session ?? "")'")
        var faults: [String] = []
        if consents != (isEnded ? 0 : 1) { faults.append("\(consents) consents, ended: \(isEnded)") }
        // It belongs to the key that the instance had at first, and ends with that.
        let isKeyGone = isEnded || records[.registrationUpdate] != 0
        if sessions != (isKeyGone ? 0 : 1) { faults.append("\(sessions) sessions, key gone: \(isKeyGone)") }
        return faults
    }

    // MARK: - Requests

    private var healthy: Node { get throws { try node(fixture.database) } }

    private func node(_ database: any SQLDatabase) throws -> Node {
        Node(
            provider: try fixture.node(database),
            registrations: RegistrationAdministration(Administration(fixture.context.anotherNode(on: database))))
    }

    /// A token with so many uses and, where something is to become of an instance, one with a grant.
    private func scene(before act: Act, count: Int64) async throws -> Scene {
        let token = try await fixture.registrations.makeToken(
            for: "pay", count: count, days: 7, fixture.grants.configuration, by: admin)
        guard act != .register else { return Scene(token: token) }
        let registered = try await fixture.register(keys[0], token: token)
        _ = try await fixture.ownToken(of: registered.id, keys[0])
        #expect(try await fixture.count("grants", where: "client_id = '\(registered.id)'") > 0)
        return Scene(token: token, registered: registered, session: try await signIn(at: registered.id))
    }

    /// Signs the user in at an instance, by a session that belongs to the instance's key, and with a consent.
    ///
    /// - Returns: the session's id.
    private func signIn(at instance: String) async throws -> String {
        let sessions = Sessions(fixture.context)
        let token = try await sessions.begin(
            userID: fixture.user.id, realm: "/alpha", limits: ProviderFixture.longSession
        ).token
        let (id, now) = (TokenHash.of(token), fixture.clock.epochSeconds)
        _ = try await fixture.database.run([
            SQLStatement(
                "UPDATE sessions SET sender = \("jkt:" + keys[0].jwk.thumbprint) WHERE id = \(id)",
                expecting: .exactly(1)),
            SQLStatement(
                """
                INSERT INTO consents (user_id, client_id, realm, scope, granted_at, used_at, expires_at)
                VALUES (\(fixture.user.id), \(instance), '/alpha', 'accounts', \(now), \(now), \(now + 86_400))
                """, expecting: .exactly(1)),
        ])
        let session = try #require(try await sessions.live(token: token))
        let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
            try ProviderFixture.authorization([
                "client_id": instance, "redirect_uri": "https://pay.example/cb", "scope": "openid accounts",
            ]), session: session)
        guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
        let assertion = try await keys[0].assertion(of: instance, now: fixture.clock)
        _ = try await fixture.exchange(
            try #require(redirect["code"]),
            AssertionKey.form(assertion, ["redirect_uri": "https://pay.example/cb"]))
        return id
    }

    /// Asks, and tells how many instances it was done with. `key` is the one that registers, or takes the place of
    /// another.
    private func ask(_ act: Act, _ scene: Scene, by key: AssertionKey, at node: Node) async throws -> Int64 {
        guard let registered = scene.registered else {
            guard act == .register else { return Int64(try await node.registrations.endSome(of: "pay", by: admin)) }
            _ = try await fixture.register(key, token: scene.token, on: node.provider)
            return 1
        }
        let registration = node.provider.registration
        switch act {
        case .endByAdministrator: try await node.registrations.end(registered.id, by: admin)
        case .token: _ = try await fixture.ownToken(of: registered.id, keys[0], on: node.provider)
        case .register, .change, .end:
            let (instance, app) = try await registration.instance(registered.id, token: registered.token)
            // As the endpoint does, which has a proof by the first key.
            guard instance.metadata.keyThumbprint == keys[0].jwk.thumbprint else { throw OAuthError.invalidToken }
            if act == .end {
                try await registration.end(instance, of: app)
            } else {
                let metadata = try InstanceMetadata(
                    ProviderFixture.request(key, ["client_id": .string(instance.id)]), of: app, as: instance.id,
                    clock: fixture.clock)
                _ = try await registration.change(instance, of: app, to: metadata, token: registered.token)
            }
        }
        return 1
    }

    /// Ends all instances, and tells what is left of them.
    private func end() async throws -> [String] {
        while try await fixture.registrations.endSome(of: "pay", by: admin) > 0 {}
        return try await fixture.count("client_instances") == 0 ? try await fixture.registrationFaults([:]) : ["left"]
    }

    /// All that a request can change.
    private func snapshot() async throws -> String {
        let rows = try await fixture.database.run([
            .read("SELECT * FROM client_instances"), .read("SELECT * FROM registration_tokens"),
            .read("SELECT * FROM registered_apps"), .read("SELECT * FROM grants"), .read("SELECT * FROM consents"),
            .read("SELECT count(*) AS n FROM sessions"), .read("SELECT count(*) AS n FROM audit"),
        ])
        return "\(rows)"
    }
}
