import AssentCore
import AssentEngine
import AssentStore
import Foundation
import GRDB
import Logging

/// An engine on a database file, with a user who is signed in and a policy that asks for a transaction.
struct TakeWorld: Sendable {
    /// A transaction that its user has approved, and the statement that takes it, ready to be bound by hand.
    struct Prepared: Sendable {
        let id: String
        let take: String
        let arguments: [DatabaseValue]

        init(id: String, binding: TransactionBinding, at now: Int64) {
            let sql = TransactionSQL.take(id, binding: binding, at: now)
            self.id = id
            take = sql.text()
            arguments = sql.arguments.map {
                switch $0 {
                case .null: .null
                case .integer(let value): value.databaseValue
                case .text(let value): value.databaseValue
                case .blob(let value): Data(value).databaseValue
                }
            }
        }
    }

    let database: any SQLDatabase
    let access: AccessSettlement
    let hand: HandMadeTake
    private let transactions: Transactions
    private let session: LiveSession

    private static let realm = "/alpha"
    private static let body = Array(#"{"to":"Bob","amount":"200.00","currency":"EUR"}"#.utf8)
    private static let url = "https://localhost:8444/transfers"

    init(path: String) async throws {
        database = try await DatabaseLocation.sqlite(path: path).open(clock: SystemClock())
        let random = SystemRandom()
        let context = EngineContext(
            database: database, clock: SystemClock(), random: random,
            masterKey: try MasterKey(Secret(bytes: random.bytes(MasterKey.byteCount))),
            logger: Logger(label: "bench", factory: { _ in SwiftLogNoOpLogHandler() }))
        let policy = Policy(
            name: "pay", resources: [try ResourcePattern("https://localhost:*/transfers")],
            actionValues: ["POST": true], subject: .authenticatedUsers,
            condition: .transaction(TransactionCondition(specifier: "ConfirmTransfer")),
            bind: [.method, .query, .body],
            display: [
                DisplayRule(label: "Amount", field: "amount", suffix: "currency"),
                DisplayRule(label: "To", field: "to"),
            ])
        transactions = Transactions(context, limits: TransactionLimits(creations: 1_000_000))
        access = AccessSettlement(
            context,
            decisions: PolicyDecisionPoint(
                policySets: [PolicySet(name: "bank", realm: Self.realm, policies: [policy])]),
            transactions: transactions)
        let user = try await Users(context).create(username: "ana", realm: Self.realm, passwordHash: nil)
        guard let user else { throw BenchFailure("the user is there already") }
        let sessions = Sessions(context)
        let begun = try await sessions.begin(userID: user.id, realm: Self.realm, limits: SessionLimits())
        guard let session = try await sessions.live(token: begun.token) else { throw BenchFailure("no session") }
        self.session = session
        hand = try await HandMadeTake(path: path)
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
        try await hand.copy(made.id, as: ids)
        let now = SystemClock().epochSeconds
        return ids.map { Prepared(id: $0, binding: made.binding, at: now) }
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
            GatewayAdmission(caller: .session(session, .field), matched: matched), mediaType: "application/json",
            body: Self.body, transactionID: transactionID)
    }
}
