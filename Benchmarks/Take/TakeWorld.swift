import AssentCore
import AssentEngine
import AssentStore
import Foundation
import Logging

/// An engine on a database file, with a user who is signed in and a policy that asks for a transaction.
struct TakeWorld: Sendable {
    /// A transaction that its user has approved, and the statement that takes it, ready to be bound by hand.
    struct Prepared: Sendable {
        let id: String
        let realm: String
        let session: LiveSession
        let take: SQL

        init(id: String, binding: TransactionBinding, session: LiveSession, at now: Int64) {
            self.id = id
            self.session = session
            realm = TakeWorld.realm
            take = TransactionSQL.take(id, binding: binding, at: now).withoutNulls()
        }
    }

    let database: any SQLDatabase
    let access: AccessSettlement
    private let transactions: Transactions
    private let session: LiveSession

    private static let realm = "/alpha"
    private static let body = Array(#"{"to":"Bob","amount":"200.00","currency":"EUR"}"#.utf8)
    private static let url = "https://localhost:8444/transfers"

    /// The first on a database.
    init(_ location: DatabaseLocation) async throws {
        let context = try await Self.context(location)
        (database, transactions, access) = try Self.parts(context)
        let user = try await Users(context).create(username: "ana", realm: Self.realm, passwordHash: nil)
        guard let user else { throw BenchFailure("the user is there already") }
        let sessions = Sessions(context)
        let begun = try await sessions.begin(userID: user.id, realm: Self.realm, limits: SessionLimits())
        guard let session = try await sessions.live(token: begun.token) else { throw BenchFailure("no session") }
        self.session = session
    }

    /// One more node on the database of another one, with connections of its own.
    init(beside other: TakeWorld, _ location: DatabaseLocation) async throws {
        (database, transactions, access) = try Self.parts(try await Self.context(location))
        session = other.session
    }

    private static func context(_ location: DatabaseLocation) async throws -> EngineContext {
        let random = SystemRandom()
        return EngineContext(
            database: try await location.open(clock: SystemClock()), clock: SystemClock(), random: random,
            masterKey: try MasterKey(Secret(bytes: random.bytes(MasterKey.byteCount))),
            logger: Logger(label: "bench", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    private static func parts(
        _ context: EngineContext
    ) throws -> (database: any SQLDatabase, transactions: Transactions, access: AccessSettlement) {
        let policy = Policy(
            name: "pay", resources: [try ResourcePattern("https://localhost:*/transfers")],
            actionValues: ["POST": true], subject: .authenticatedUsers,
            condition: .transaction(TransactionCondition(specifier: "ConfirmTransfer")),
            bind: [.method, .query, .body],
            display: [
                DisplayRule(label: "Amount", field: "amount", suffix: "currency"),
                DisplayRule(label: "To", field: "to"),
            ])
        let transactions = Transactions(context, limits: TransactionLimits(creations: 1_000_000))
        let access = AccessSettlement(
            context,
            decisions: PolicyDecisionPoint(policySets: [PolicySet(name: "bank", realm: realm, policies: [policy])]),
            transactions: transactions)
        return (context.database, transactions, access)
    }

    /// Makes `count` approved transactions: one by the engine, the others as copies of its row.
    func prepare(_ count: Int) async throws -> [Prepared] {
        guard case .advised(_, let made?) = await access.settle(try request(nil)) else {
            throw BenchFailure("the policy asks for no transaction")
        }
        let approval = try await transactions.start(id: made.id, session: session)
        _ = try await database.run(transactions.completion(of: approval, session: session))
        let random = SystemRandom()
        let ids = (0..<count).map { _ in random.uuid() }
        let others = try await columns().joined(separator: ", ")
        for start in stride(from: 0, to: ids.count, by: 500) {
            let copies = ids[start..<min(start + 500, ids.count)].map { copy in
                SQLStatement(
                    """
                    INSERT INTO transactions (id, \(SQL(verbatim: others)))
                    SELECT \(copy), \(SQL(verbatim: others)) FROM transactions WHERE id = \(made.id)
                    """, expecting: .exactly(1))
            }
            _ = try await database.run(copies)
        }
        let now = SystemClock().epochSeconds
        return ids.map { Prepared(id: $0, binding: made.binding, session: session, at: now) }
    }

    private func columns() async throws -> [String] {
        try await database.run(.read("SELECT * FROM transactions LIMIT 1")).first?.names.filter { $0 != "id" } ?? []
    }

    /// How many of these transactions are taken, each with one record in the audit log.
    func taken(_ prepared: [Prepared]) async throws -> Int {
        var count = 0
        for each in prepared {
            let row = try await database.run(
                .read(
                    """
                    SELECT count(*) AS n FROM transactions t WHERE t.id = \(each.id) AND t.state = 'TAKEN' AND 1 =
                        (SELECT count(*) FROM audit a WHERE a.transaction_id = t.id AND a.event = 'transaction.take')
                    """)
            ).first
            count += Int(try row?.integer("n") ?? 0)
        }
        return count
    }

    /// Decides with a transaction, as the gateway does once it has read a request.
    func take(_ prepared: Prepared) async throws {
        guard case .granted(_?) = await access.settle(try request(prepared.id)) else {
            throw BenchFailure("a transaction was not taken")
        }
    }

    private func request(_ transactionID: String?) throws -> GatewayRequest {
        let resource = try CanonicalResource(Self.url)
        let matched = access.decisions.policySet("bank", realm: Self.realm).map {
            access.decisions.match($0, resource: resource, action: "POST")
        }
        return GatewayRequest(
            GatewayAdmission(caller: .session(session, .field), method: "POST", matched: matched),
            mediaType: "application/json", body: Self.body, transactionID: transactionID)
    }
}
