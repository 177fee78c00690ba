import AssentCore
import AssentOTP
import AssentStore
import AssentTesting
import Foundation
import Logging
import StoreTesting
import Testing

@testable import AssentEngine

/// An engine on a real database in a directory of its own, with journeys and two users.
final class JourneyFixture: Sendable {
    let directory: URL
    let path: String
    let database: any SQLDatabase
    let clock: ManualClock
    let context: EngineContext
    let derivations = CountingDerivation()
    let passwords: Passwords
    let oneTimePasswords: OneTimePasswords
    let transactions: Transactions
    let authentication: Authentication
    let sessions: Sessions
    let ana: User
    let ben: User

    static let password = "correct horse 7419"
    static let seed = Secret("anas-seed-of-20-byte")

    init(
        failedTransaction: FailedTransaction = .failure, signIn: SignInLimits = SignInLimits(attempts: 1000),
        otp: OneTimePasswordLimits = OneTimePasswordLimits(), more: [JourneyDefinition] = [],
        catalog: NodeCatalog = .standard, syncsToDisk: Bool = true, operated: OperatedDatabase? = nil
    ) async throws {
        let memory = URL(filePath: "/dev/shm")
        let isMemoryThere = FileManager.default.isWritableFile(atPath: memory.path)
        let parent = syncsToDisk || !isMemoryThere ? FileManager.default.temporaryDirectory : memory
        directory = parent.appending(path: "assent-journeys-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        path = directory.appending(path: "assent.sqlite").path
        clock = operated?.clock ?? ManualClock()
        database =
            if let operated {
                try await RestorableDatabase(operated)
            } else {
                try await TestDatabase.location(path).open(clock: clock)
            }
        context = try TransactionFixture.context(database, clock: clock, key: operated?.key)
        passwords = Passwords(
            context, policy: PasswordPolicy(logN: 4, parallelChecks: 4, waitingChecks: 500), limits: signIn,
            derivation: derivations)
        oneTimePasswords = OneTimePasswords(context, limits: otp)
        transactions = Transactions(context, limits: TransactionLimits(creations: 100_000))
        sessions = Sessions(context)
        authentication = try Self.authentication(
            context, passwords, oneTimePasswords, transactions, failedTransaction, more, catalog)
        ana = try await Self.user("ana", context, passwords)
        ben = try await Self.user("ben", context, passwords)
        try await oneTimePasswords.enrol(TOTP(secret: Self.seed), userID: ana.id)
    }

    deinit {
        try? FileManager.default.removeItem(at: directory)
    }

    static func authentication(
        _ context: EngineContext, _ passwords: Passwords, _ oneTimePasswords: OneTimePasswords,
        _ transactions: Transactions, _ failedTransaction: FailedTransaction = .failure,
        _ more: [JourneyDefinition] = [], _ catalog: NodeCatalog = .standard
    ) throws -> Authentication {
        let alpha = try RealmSignIn(
            journeys: journeys + more, defaultJourney: "Login", successURL: "/console",
            failedTransaction: failedTransaction, remembersNetworks: true, catalog: catalog)
        let beta = try RealmSignIn(journeys: [login], defaultJourney: "Login")
        return Authentication(
            context, realms: ["/alpha": alpha, "/beta": beta], transactions: transactions, passwords: passwords,
            oneTimePasswords: oneTimePasswords, proofs: SenderProofs(context))
    }

    private static func user(_ name: String, _ context: EngineContext, _ passwords: Passwords) async throws -> User {
        let hash = try await passwords.hash(Secret(password))
        let user = try await Users(context).create(username: name, realm: "/alpha", passwordHash: hash)
        return try #require(user)
    }

    /// The code that Ana's authenticator shows now.
    func code(stepsAhead: Int = 0) throws -> String {
        try TOTP(secret: Self.seed).code(at: clock.now + Double(30 * stepsAhead))
    }

    func send(
        _ answer: PageAnswer? = nil, realm: String = "/alpha", type: String? = nil, value: String? = nil,
        forceAuth: Bool = false, noSession: Bool = false, session: Secret? = nil, from address: String? = nil,
        headers: [String: String] = [:]
    ) async throws -> AuthenticateReply {
        try await authentication.authenticate(
            AuthenticateRequest(
                realm: realm, authIndexType: type, authIndexValue: value, forceAuth: forceAuth, noSession: noSession,
                sessionToken: session, answer: answer, clientAddress: address, header: { name in headers[name] }))
    }

    func start(
        _ journey: String, forceAuth: Bool = false, noSession: Bool = false, session: Secret? = nil
    ) async throws -> Page {
        try Page(
            await send(
                type: "service", value: journey, forceAuth: forceAuth, noSession: noSession, session: session))
    }

    func answer(_ page: Page, _ values: [JSONValue?], session: Secret? = nil) async throws -> AuthenticateReply {
        try await send(page.answered(values), session: session)
    }

    /// Signs Ana in by password alone.
    func signIn(_ name: String = "ana", password: String = password) async throws -> Secret {
        let page = try await start("Password")
        return try await answer(page, [.string(name), .string(password)]).token()
    }

    /// A transaction that waits for its approval by the journey `Confirm`.
    func transaction(
        _ session: Secret, journey: String = "Confirm", method: String = "POST", ttl: Int64 = 180,
        display: [DisplayLine] = [
            DisplayLine(label: "Amount", value: "200.00 EUR"), DisplayLine(label: "To", value: "Bob"),
        ]
    ) async throws -> String {
        let live = try #require(try await sessions.live(token: session))
        let condition = TransactionCondition(specifier: journey)
        let binding = try #require(
            TransactionBinding(
                try TransactionFixture.policySet(), try TransactionFixture.policy(), condition,
                resource: try CanonicalResource("https://api.bank.example/transfers"),
                content: RequestContent(
                    method: method, mediaType: "application/json", body: TransactionFixture.body),
                presented: PresentedSession(live),
                maker: .gateway))
        return try await transactions.create(
            binding: binding, url: "https://api.bank.example:443/transfers",
            display: display, ttl: ttl, idempotencyKey: context.random.uuid()
        ).id
    }

    func approve(_ id: String, session: Secret?) async throws -> Page {
        try Page(await send(type: "transaction", value: id, session: session))
    }

    func state(_ id: String) async throws -> String? {
        try await database.run(.read("SELECT state FROM transactions WHERE id = \(id)")).first?.text("state")
    }

    func count(_ table: String) async throws -> Int64 {
        try await database.run(.read("SELECT count(*) AS n FROM \(SQL(verbatim: table))")).first?.integer("n") ?? -1
    }

    /// The audit records of the end of journeys: outcome and reason, sorted.
    func audited() async throws -> [String] {
        try await AuditLog(context).newest(10_000).filter { $0.event == .authenticate }
            .map { "\($0.outcome.rawValue) \($0.reason ?? "-")" }.sorted()
    }
}

/// scrypt that counts how often it was computed.
final class CountingDerivation: PasswordDerivation {
    private let calls = Locked(0)

    var count: Int { calls.withLock { $0 } }

    func derive(_ password: Secret, salt: [UInt8], cost: PasswordHash.Cost, byteCount: Int) throws -> [UInt8] {
        calls.withLock { $0 += 1 }
        return try ScryptDerivation().derive(password, salt: salt, cost: cost, byteCount: byteCount)
    }
}

/// A page as a client sees it.
struct Page: Sendable {
    let authID: String
    let content: PageContent

    init(_ reply: AuthenticateReply) throws {
        guard case .page(let page) = reply else { throw Unexpected.success }
        authID = page.authID.reveal()
        content = page.content
    }

    var types: [String] { content.prompts.map(\.kind.rawValue) }

    /// The answer of a client; `nil` leaves a callback as it came.
    func answered(_ values: [JSONValue?]) -> PageAnswer {
        PageAnswer(
            authID: authID,
            callbacks: content.prompts.enumerated().map { index, prompt in
                let value = values.indices.contains(index) ? values[index] : nil
                return ReturnedCallback(
                    kind: prompt.kind,
                    inputs: prompt.inputs.map { input in
                        ReturnedInput(
                            name: InputName(place: index + 1, part: input.part),
                            value: value.map(ReturnedInput.Value.init) ?? ReturnedInput.Value(input.initial))
                    })
            })
    }
}

/// A reply of another kind than the test expects.
enum Unexpected: Error { case success, page }

extension PageAnswer {
    /// An answer whose bytes say what it says.
    init(authID: String, callbacks: [ReturnedCallback]?) {
        self.init(authID: authID, callbacks: callbacks, bytes: Array("\(authID) \(callbacks ?? [])".utf8))
    }
}

extension ReturnedInput.Value {
    init(_ json: JSONValue) {
        self = json.string.map { .text($0) } ?? json.integer.map { .number($0) } ?? .none
    }

    init(_ initial: CallbackInput.Initial) {
        self =
            switch initial {
            case .text(let text): .text(text)
            case .index(let index, _): .number(Int64(index))
            }
    }
}

extension AuthenticateReply {
    func success() throws -> AuthenticateSuccess {
        guard case .success(let success) = self else { throw Unexpected.page }
        return success
    }

    func token() throws -> Secret { try #require(try success().token) }
}

extension JourneyFixture {
    static let credentials = NodeDefinition(
        "PageNode",
        config: JSONObject([
            .init(name: "stage", value: "UsernamePassword"), .init(name: "header", value: "Sign in"),
            .init(name: "nodes", value: [["type": "UsernameCollectorNode"], ["type": "PasswordCollectorNode"]]),
        ]), outcomes: ["outcome": .node("check")])

    static let otp = NodeDefinition(
        "OathTokenVerifierNode",
        outcomes: ["successOutcome": .success, "failureOutcome": .failure, "notRegisteredOutcome": .failure])

    static let login = JourneyDefinition(
        name: "Login", entry: "credentials",
        nodes: [
            "credentials": credentials,
            "check": NodeDefinition(
                "DataStoreDecisionNode", outcomes: ["true": .node("otp"), "false": .node("retry")]),
            "retry": NodeDefinition(
                "RetryLimitDecisionNode", config: JSONObject([.init(name: "retryLimit", value: 2)]),
                outcomes: ["Retry": .node("credentials"), "Reject": .failure]),
            "otp": otp,
        ], authLevel: 5)

    static let byPassword = JourneyDefinition(
        name: "Password", entry: "credentials",
        nodes: [
            "credentials": credentials,
            "check": NodeDefinition("DataStoreDecisionNode", outcomes: ["true": .success, "false": .failure]),
        ])

    static let journeys: [JourneyDefinition] = [
        login, byPassword,
        JourneyDefinition(
            name: "Confirm", entry: "approve",
            nodes: [
                "approve": NodeDefinition(
                    "TransactionApprovalNode", outcomes: ["approve": .node("otp"), "decline": .failure]),
                "otp": otp,
            ], transactionalOnly: true),
        JourneyDefinition(
            name: "Lenient", entry: "approve",
            nodes: [
                "approve": NodeDefinition(
                    "TransactionApprovalNode", outcomes: ["approve": .success, "decline": .success])
            ], transactionalOnly: true),
        JourneyDefinition(name: "ConfirmByCode", entry: "otp", nodes: ["otp": otp], transactionalOnly: true),
        JourneyDefinition(
            name: "ConfirmByPassword", entry: "credentials", nodes: byPassword.nodes, transactionalOnly: true),
        JourneyDefinition(
            name: "Silent", entry: "level",
            nodes: ["level": NodeDefinition("ModifyAuthLevelNode", outcomes: ["outcome": .success])]),
        JourneyDefinition(
            name: "ZeroPage", entry: "zero",
            nodes: [
                "zero": NodeDefinition("ZeroPageLoginNode", outcomes: ["true": .node("check"), "false": .failure]),
                "check": NodeDefinition("DataStoreDecisionNode", outcomes: ["true": .success, "false": .failure]),
            ]),
        JourneyDefinition(
            name: "Message", entry: "message",
            nodes: [
                "message": NodeDefinition(
                    "MessageNode", config: JSONObject([.init(name: "message", value: "Really?")]),
                    outcomes: ["true": .success, "false": .failure])
            ], mustRun: true),
    ]
}
