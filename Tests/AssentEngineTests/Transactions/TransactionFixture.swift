import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Logging
import StoreTesting
import Testing

@testable import AssentEngine

/// An engine on a real database in a directory of its own, with one policy set and two users who are signed in.
final class TransactionFixture: Sendable {
    let path: String
    let directory: URL
    let database: any SQLDatabase
    let clock: ManualClock
    let context: EngineContext
    let transactions: Transactions
    let ana: LiveSession
    let anaElsewhere: LiveSession
    let ben: LiveSession
    let gateway: LiveSession

    static let body = Array(#"{"to":"Bob","amount":"200.00","currency":"EUR"}"#.utf8)
    static let content = RequestContent(method: "POST", mediaType: "application/json", body: body)

    /// On the tests' database, unless another one is named.
    init(
        limits: TransactionLimits = TransactionLimits(), _ location: DatabaseLocation? = nil,
        operated: OperatedDatabase? = nil
    ) async throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "assent-transactions-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        path = directory.appending(path: "assent.sqlite").path
        clock = operated?.clock ?? ManualClock()
        if let operated {
            database = try await RestorableDatabase(operated)
        } else {
            let location = if let location { location } else { try await TestDatabase.location(path) }
            database = try await location.open(clock: clock)
        }
        context = try Self.context(database, clock: clock, key: operated?.key)
        transactions = Transactions(context, limits: limits)
        ana = try await Self.signIn("ana", roles: [], context)
        anaElsewhere = try await Self.signIn("ana", roles: [], context)
        ben = try await Self.signIn("ben", roles: [], context)
        gateway = try await Self.signIn("gateway", roles: [.pep], context)
    }

    /// What a fixture has left whose database was closed.
    struct Left: Sendable {
        fileprivate let file: Data
        fileprivate let now: Date
        fileprivate let ana: LiveSession
        fileprivate let anaElsewhere: LiveSession
        fileprivate let ben: LiveSession
        fileprivate let gateway: LiveSession
    }

    /// A fixture that begins with what another one has left, in a directory of its own: to copy a file costs far less
    /// than what was done to its database.
    init(beginningWith left: Left) async throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "assent-transactions-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        path = directory.appending(path: "assent.sqlite").path
        try left.file.write(to: URL(filePath: path), options: .withoutOverwriting)
        clock = ManualClock(left.now)
        database = try await DatabaseLocation.sqlite(path: path).open(clock: clock)
        context = try Self.context(database, clock: clock)
        transactions = Transactions(context, limits: TransactionLimits())
        ana = left.ana
        anaElsewhere = left.anaElsewhere
        ben = left.ben
        gateway = left.gateway
    }

    deinit {
        try? FileManager.default.removeItem(at: directory)
    }

    /// Closes the database, which must be the SQLite file of the first initialiser, and removes the directory. Nothing
    /// that has used it works any more.
    func left() async throws -> Left {
        try await database.close()
        // Whatever was written stands in the file alone.
        try #require(!FileManager.default.fileExists(atPath: path + "-wal"))
        let file = try Data(contentsOf: URL(filePath: path))
        try FileManager.default.removeItem(at: directory)
        return Left(
            file: file, now: clock.now, ana: ana, anaElsewhere: anaElsewhere, ben: ben, gateway: gateway)
    }

    static func context(
        _ database: any SQLDatabase, clock: any WallClock, seed: UInt64 = 1, key: Secret? = nil
    ) throws -> EngineContext {
        EngineContext(
            database: database, clock: clock, random: SystemRandom(),
            masterKey: try MasterKey(key ?? Secret(bytes: SeededRandom(seed: seed).bytes(MasterKey.byteCount))),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    static func signIn(
        _ name: String, roles: Set<Role> = [], level: Int = 0, properties: JSONObject = JSONObject(),
        _ context: EngineContext
    ) async throws -> LiveSession {
        let users = Users(context)
        let sessions = Sessions(context)
        let made = try await users.create(
            username: name, realm: "/alpha", passwordHash: nil, roles: roles,
            attributes: JSONObject([.init(name: "mail", value: .string("\(name)@bank.example"))]))
        let found = try await users.find(username: name, realm: "/alpha")
        let user = try #require(made ?? found)
        let begun = try await sessions.begin(
            userID: user.id, realm: "/alpha", authLevel: level, limits: SessionLimits(), properties: properties)
        return try #require(try await sessions.live(token: begun.token))
    }

    static func policy(
        _ name: String = "transfers",
        resources: [String] = ["https://api.bank.example:443/transfers", "https://api.bank.example:443/transfers?*"],
        actions: [String: Bool] = ["POST": true], subject: PolicySubject = .authenticatedUsers,
        condition: PolicyCondition? = .transaction(TransactionCondition(specifier: "Confirm")),
        bind: Set<BoundField> = [.method, .query, .body],
        display: [DisplayRule] = [
            DisplayRule(label: "Amount", field: "amount", suffix: "currency"), DisplayRule(label: "To", field: "/to"),
        ],
        notShown: [String] = ["?kind"]
    ) throws -> Policy {
        Policy(
            name: name, resources: try resources.map { try ResourcePattern($0) }, actionValues: actions,
            subject: subject, condition: condition, bind: bind, display: display,
            notShown: display.isEmpty ? [] : notShown)
    }

    static func policySet(_ policies: [Policy]? = nil, name: String = "bank", realm: String = "/alpha") throws
        -> PolicySet
    {
        PolicySet(name: name, realm: realm, policies: try policies ?? [policy()])
    }

    func settlement(_ policies: [Policy]? = nil) throws -> AccessSettlement {
        AccessSettlement(
            context, decisions: PolicyDecisionPoint(policySets: [try Self.policySet(policies)]),
            transactions: transactions)
    }

    /// What the standard policy binds of the standard request, with parts of it replaced.
    func binding(
        set: PolicySet? = nil, policy: Policy? = nil,
        condition: TransactionCondition = TransactionCondition(specifier: "Confirm"),
        url: String = "https://api.bank.example/transfers?kind=sepa", content: RequestContent = content,
        session: LiveSession? = nil, grantID: String? = nil, sender: SenderBinding? = nil,
        maker: TransactionMaker = .gateway
    ) throws -> TransactionBinding {
        let presented = PresentedSession(session ?? ana, grantID: grantID, sender: sender)
        return try #require(
            TransactionBinding(
                try set ?? Self.policySet(), try policy ?? Self.policy(), condition,
                resource: try CanonicalResource(url), content: content, presented: presented,
                maker: maker))
    }

    /// A transaction of a request of its own, also when another one looks the same.
    func create(_ binding: TransactionBinding? = nil, ttl: Int64 = 180) async throws -> TransactionRecord {
        try await transactions.create(
            binding: try binding ?? self.binding(), url: "https://api.bank.example:443/transfers?kind=sepa",
            display: [DisplayLine(label: "Amount", value: "200.00 EUR")], ttl: ttl,
            idempotencyKey: context.random.uuid())
    }

    /// A transaction that its user has approved.
    func approved(_ binding: TransactionBinding? = nil, session: LiveSession? = nil) async throws -> String {
        let record = try await create(binding)
        try await approve(record.id, session: session ?? ana)
        return record.id
    }

    func approve(_ id: String, session: LiveSession? = nil) async throws {
        let approval = try await transactions.start(id: id, session: session ?? ana)
        _ = try await database.run(transactions.completion(of: approval, session: session ?? ana))
    }

    /// The grant of an access token that Ana's session is presented by.
    func giveGrant(_ id: String) async throws {
        let now = clock.epochSeconds
        _ = try await database.run(
            SQLStatement(
                """
                INSERT INTO grants (id, realm, client_id, user_id, session_id, session_audit_id, scope, is_offline,
                    auth_time, auth_level, created_at, expires_at, epoch)
                VALUES (\(id), '/alpha', 'app', \(ana.user.id), \(ana.id), \(ana.auditID), '', 0,
                    \(now), 0, \(now), \(now + 3600), \(ana.user.epoch))
                ON CONFLICT (id) DO NOTHING
                """))
    }

    func state(_ id: String) async throws -> String? {
        try await database.run(.read("SELECT state FROM transactions WHERE id = \(id)")).first?.text("state")
    }

    /// The audit records of an event of a transaction: outcome and reason.
    func audited(_ event: AuditEvent, _ id: String) async throws -> [String] {
        try await AuditLog(context).records(transactionID: id).filter { $0.event == event }
            .map { "\($0.outcome.rawValue) \($0.reason ?? "-")" }
    }
}

extension TakeResult {
    var isTaken: Bool { if case .taken = self { true } else { false } }

    var refusal: TransactionRefusal? { if case .refused(let reason) = self { reason } else { nil } }
}

/// A request as a test describes it, with the session that it was sent in.
struct SentRequest: Sendable {
    var realm = "/alpha"
    var policySet = "bank"
    var session: PresentedSession?
    var method: String
    /// The action that is asked for; `nil` when it is the method.
    var action: String?
    var resource: CanonicalResource
    var mediaType: String?
    var body: [UInt8]?
    var transactionID: String?
    var idempotencyKey: String?
    var clientAddress: IPAddress?
}

extension AccessSettlement {
    /// Decides on a request as the gateway does.
    func settle(_ sent: SentRequest) async -> AccessDecision {
        var caller = Caller.anonymous
        if let presented = sent.session {
            caller =
                presented.grantID.map { .accessToken(.of(presented, grantID: $0), newNonce: nil) }
                ?? .session(presented.session, .field)
        }
        let matched = decisions.policySet(sent.policySet, realm: sent.realm).map {
            decisions.match($0, resource: sent.resource, action: sent.action ?? sent.method)
        }
        return await settle(
            GatewayRequest(
                GatewayAdmission(caller: caller, method: sent.method, matched: matched), mediaType: sent.mediaType,
                body: sent.body, transactionID: sent.transactionID, clientAddress: sent.clientAddress,
                idempotencyKey: sent.idempotencyKey))
    }
}

extension AccessGrant {
    /// The grant of an access token by which a session was presented.
    static func of(_ presented: PresentedSession, grantID: String) -> AccessGrant {
        AccessGrant(
            grantID: grantID, tokenID: presented.tokenID ?? "t", clientID: "app",
            owner: ResourceOwner(
                user: presented.session.user, session: presented.session, sessionAuditID: presented.session.auditID,
                authTime: presented.session.createdAt, authLevel: presented.session.authLevel), scopes: [],
            audience: [], acr: nil, issuedAt: 0, expiresAt: .max, sender: presented.sender,
            isOffline: false, app: nil)
    }
}
