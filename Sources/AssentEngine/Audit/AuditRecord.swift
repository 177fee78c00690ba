package import AssentCore
package import AssentStore
package import Foundation

/// One line of the audit log: who did what, how it came out and why. Never a secret, a token or a body.
package struct AuditRecord: Sendable, Hashable {
    /// When it was written, to the millisecond; `nil` for one that was not written yet.
    package private(set) var at: Date?

    /// The node that has written it; `nil` for one that was not written yet.
    package private(set) var node: String?

    /// Its number in the series of its node, from 1 without gaps; `nil` for one that was not numbered yet.
    package private(set) var sequence: Int64?

    /// Its place among the records: microseconds since 1970, and later than any before it of the same node; `nil` for
    /// one that was not written yet.
    package private(set) var position: Int64?

    /// What happened, for example `transaction.take`.
    package var event: AuditEvent

    /// How it came out.
    package var outcome: Outcome

    /// For a refusal: the field or the rule that did not match, for example `body`.
    package var reason: String?

    /// The realm.
    package var realm: String?

    /// The user's id.
    package var userID: String?

    /// The user's name, as it is now, in a record that was read.
    package private(set) var username: String?

    /// The session's audit id; not its token.
    package var sessionAuditID: String?

    /// The transaction's id.
    package var transactionID: String?

    /// More, by name; values that may be shown to an auditor.
    package var detail: JSONObject

    /// A record.
    package init(
        _ event: AuditEvent, _ outcome: Outcome, reason: String? = nil, realm: String? = nil, userID: String? = nil,
        sessionAuditID: String? = nil, transactionID: String? = nil, detail: JSONObject = JSONObject()
    ) {
        self.event = event
        self.outcome = outcome
        self.reason = reason
        self.realm = realm
        self.userID = userID
        self.sessionAuditID = sessionAuditID
        self.transactionID = transactionID
        self.detail = detail
    }

    /// How it came out.
    package enum Outcome: String, Sendable, Hashable {
        /// It was done.
        case success
        /// It was refused.
        case refused
        /// It failed on our side.
        case failed
    }
}

/// The audit log, in the database, written in the same transaction as what it tells of where there is one.
package struct AuditLog: Sendable {
    private let context: EngineContext
    private var series: AuditSeries { context.auditSeries }

    /// The log of a context.
    package init(_ context: EngineContext) {
        self.context = context
    }

    /// The statement that writes `record`, to be run beside the statements that it tells of. The `id` is a new one
    /// unless something signed names it.
    package func statement(_ record: AuditRecord, id: String? = nil) -> SQLStatement {
        let insert = inserting(record, id: id, when: "1 = 1")
        return id == nil ? .record(insert) : SQLStatement(insert, expecting: .exactly(1))
    }

    /// The statement that writes `record` if a condition is true after the statements before it.
    func statement(_ record: AuditRecord, when condition: SQL) -> SQLStatement {
        SQLStatement(inserting(record, id: nil, when: condition))
    }

    /// The same with a number `n` in its details that only the statements before it know; `numbered` gives it as text.
    func statement(_ record: AuditRecord, numbered: SQL, when condition: SQL) -> SQLStatement {
        let detail = JSONValue.object(record.detail).serialized()
        let start = String(detail.dropLast()) + (record.detail.members.isEmpty ? "" : ",") + #""n":"#
        return SQLStatement(inserting(record, id: nil, when: condition, detail: "\(start) || \(numbered) || '}'"))
    }

    /// The statement that writes `record` with the user, the session and, in its details, the id of a grant that only
    /// the statements before it know; `grantID` is a query in parentheses that gives it.
    ///
    /// Where that gives none, it writes a record all the same, of no user: by it the database finds out what became of
    /// a commit, so it writes one row whatever there is. It belongs behind a statement that fails without the grant.
    func statement(_ record: AuditRecord, ofGrant grantID: SQL) -> SQLStatement {
        let detail = JSONValue.object(record.detail).serialized()
        let start = String(detail.dropLast()) + (record.detail.members.isEmpty ? "" : ",") + #""grant":""#
        let end = #""}"#
        return .record(
            """
            INSERT INTO audit
                (id, at, event, outcome, reason, realm, user_id, session_audit_id, transaction_id, detail, node,
                position)
            SELECT \(context.random.uuid()), \(context.clock.epochMilliseconds), \(record.event.rawValue),
                \(record.outcome.rawValue), \(record.reason), \(record.realm), g.user_id, g.session_audit_id,
                \(record.transactionID), \(start) || coalesce(g.id, '') || \(end), \(series.node),
                \(series.next(at: 1000 * context.clock.epochMilliseconds))
            FROM (SELECT \(grantID) AS id) AS wanted LEFT JOIN grants g ON g.id = wanted.id
            """)
    }

    /// The statement that writes `record` once for each container `c` for which a condition is true after the
    /// statements before it, with its `did` and its user.
    func statement(_ record: AuditRecord, forEachContainer condition: SQL) -> SQLStatement {
        let detail = JSONValue.object(record.detail).serialized()
        let start = #"{"did":""#
        let rest = record.detail.members.isEmpty ? #""}"# : #"","# + detail.dropFirst()
        let position = series.next(Self.containers, at: 1000 * context.clock.epochMilliseconds)
        return SQLStatement(
            """
            INSERT INTO audit
                (id, at, event, outcome, reason, realm, user_id, session_audit_id, transaction_id, detail, node,
                position)
            SELECT \(context.random.uuid() + "-") || c.did, \(context.clock.epochMilliseconds),
                \(record.event.rawValue), \(record.outcome.rawValue), \(record.reason), \(record.realm), c.user_id,
                \(record.sessionAuditID), \(record.transactionID), \(start) || c.did || \(rest), \(series.node),
                \(position - 1) + row_number() OVER (ORDER BY c.did)
            FROM signing_containers c WHERE \(condition)
            """)
    }

    /// For how many containers of one act places are kept. The records of more share the places of others.
    private static let containers: Int64 = 1000

    private func inserting(_ record: AuditRecord, id: String?, when condition: SQL, detail: SQL? = nil) -> SQL {
        """
        INSERT INTO audit
            (id, at, event, outcome, reason, realm, user_id, session_audit_id, transaction_id, detail, node,
            position)
        SELECT \(id ?? context.random.uuid()), \(context.clock.epochMilliseconds), \(record.event.rawValue),
            \(record.outcome.rawValue), \(record.reason), \(record.realm), \(record.userID),
            \(record.sessionAuditID), \(record.transactionID),
            \(detail ?? "\(JSONValue.object(record.detail).serialized())"),
            \(series.node), \(series.next(at: 1000 * context.clock.epochMilliseconds))
        WHERE \(condition)
        """
    }

    /// Writes `record` by itself.
    package func write(_ record: AuditRecord) async throws {
        _ = try await context.database.run(statement(record))
    }

    /// Goes on with the node's series where its earlier run has ended, so that records keep their order when the clock
    /// was put back in between.
    package func resume() async throws {
        let row = try await context.database.run(
            .read("SELECT max(position) AS latest FROM audit WHERE node = \(series.node)")
        ).first
        try row?.optionalInteger("latest").map(series.resume(after:))
    }

    /// Numbers the node's records that have no number yet: from 1 without gaps, so that a record that is taken away
    /// later is missed. What writes a record does not number it: one record would have to wait for the other's commit.
    ///
    /// Some are numbered in one transaction: all at once could take longer than a statement may, each time anew. They
    /// are sorted by a sum: by the index of places PostgreSQL would walk past all records that have a number.
    package func number() async throws {
        while true {
            let number = SQLStatement(
                """
                UPDATE audit SET sequence = numbered.number FROM (
                    SELECT id, row_number() OVER (ORDER BY position, id)
                        + (SELECT coalesce(max(sequence), 0) FROM audit WHERE node = \(series.node)) AS number
                    FROM (SELECT id, position FROM audit WHERE node = \(series.node) AND sequence IS NULL
                        ORDER BY position + 0, id LIMIT \(EngineContext.rowsAtOnce)) AS oldest) AS numbered
                WHERE audit.id = numbered.id AND audit.sequence IS NULL RETURNING sequence
                """)
            do {
                guard try await context.database.run(number).count == EngineContext.rowsAtOnce else { return }
            } catch let error as StoreError where error.code == .constraint {
                // Another task of this server has just numbered them.
                return
            }
        }
    }

    /// The records that are asked for; of one realm, if it is named.
    package func records(_ query: AuditQuery, ofRealm realm: String? = nil) async throws -> [AuditRecord] {
        var users: [String] = []
        if let user = query.user { users = try await ids(of: user, ofRealm: realm) }
        return try await context.database.run(.read(Self.reading(query, about: users, ofRealm: realm)))
            .map(AuditRecord.init)
    }

    /// The ids of the users who have this id or name; what is neither is taken for an id that no user has.
    private func ids(of user: String, ofRealm realm: String?) async throws -> [String] {
        let isOfRealm: SQL = realm.map { "realm = \($0)" } ?? "1 = 1"
        let rows = try await context.database.run(
            .read("SELECT id FROM users WHERE id = \(user) OR (username = \(user) AND \(isOfRealm))"))
        let ids = try rows.map { try $0.text("id") }
        return ids.isEmpty ? [user] : ids
    }

    /// What reads the records that are asked for. `users` are the ids of whom they are about, where that is asked.
    /// Those of an id are found by an index, in their order; by a name the database would look at the records of all,
    /// which takes longer than a statement may.
    static func reading(_ query: AuditQuery, about users: [String], ofRealm realm: String?) -> SQL {
        let isOfRealm: SQL = realm.map { "a.realm = \($0)" } ?? "1 = 1"
        let end: SQL =
            switch query {
            case .transaction(let id):
                "a.transaction_id = \(id) AND \(isOfRealm) ORDER BY a.position, a.node"
            case .newest(let limit, let filter):
                """
                \(filter.condition(about: users)) AND \(isOfRealm)
                ORDER BY a.position DESC, a.node DESC LIMIT \(AuditQuery.bounded(limit))
                """
            case .after(let position, let limit, let filter):
                """
                a.position > \(position) AND \(filter.condition(about: users)) AND \(isOfRealm)
                ORDER BY a.position, a.node LIMIT \(AuditQuery.bounded(limit))
                """
            }
        return "SELECT a.*, u.username FROM audit a LEFT JOIN users u ON u.id = a.user_id WHERE \(end)"
    }

    /// The records of a transaction, oldest first.
    package func records(transactionID: String) async throws -> [AuditRecord] {
        try await records(.transaction(transactionID))
    }

    /// The newest records, newest first, at most `limit`.
    package func newest(_ limit: Int) async throws -> [AuditRecord] {
        try await records(.newest(limit: limit))
    }
}

/// Which audit records somebody wants to see.
package enum AuditQuery: Sendable, Hashable {
    /// Those of a transaction, oldest first.
    case transaction(String)
    /// The newest, newest first.
    case newest(limit: Int, filter: AuditFilter = AuditFilter())
    /// Those with a later position, oldest first. Nodes write in parallel: a record may be seen after one with a later
    /// position, so anyone who follows the log asks from some seconds before what they have seen.
    case after(position: Int64, limit: Int, filter: AuditFilter = AuditFilter())

    static func bounded(_ limit: Int) -> Int { min(max(limit, 1), 10_000) }

    /// The id or the name of the user whom the records are about.
    fileprivate var user: String? {
        switch self {
        case .transaction: nil
        case .newest(_, let filter): filter.user
        case .after(_, _, let filter): filter.user
        }
    }
}

/// Which of the audit records are wanted. What is `nil` is not looked at.
package struct AuditFilter: Sendable, Hashable {
    /// Seconds since 1970 from which on they were written.
    package var since: Int64?
    /// The id or the name of the user whom they are about.
    package var user: String?
    /// The event, for example `password.verify`.
    package var event: String?

    /// A filter.
    package init(since: Int64? = nil, user: String? = nil, event: String? = nil) {
        self.since = since
        self.user = user
        self.event = event
    }

    /// That a record is wanted. `users` are the ids that ``user`` stands for.
    fileprivate func condition(about users: [String]) -> SQL {
        var condition: SQL = "1 = 1"
        if let since { condition = "\(condition) AND a.at >= \(1000 * since)" }
        if let only = users.first, users.count == 1 {
            condition = "\(condition) AND a.user_id = \(only)"
        } else if !users.isEmpty {
            condition = "\(condition) AND a.user_id IN (\(SQL(list: users.map(SQLValue.text))))"
        }
        if let event { condition = "\(condition) AND a.event = \(event)" }
        return condition
    }
}

extension AuditRecord {
    fileprivate init(_ row: SQLRow) throws {
        guard let outcome = Outcome(rawValue: try row.text("outcome")) else {
            throw StoreError(.corrupt, "unknown audit outcome")
        }
        self.init(
            AuditEvent(rawValue: try row.text("event")), outcome, reason: try row.optionalText("reason"),
            realm: try row.optionalText("realm"), userID: try row.optionalText("user_id"),
            sessionAuditID: try row.optionalText("session_audit_id"),
            transactionID: try row.optionalText("transaction_id"),
            detail: try JSONValue.parse(row.text("detail")).object ?? JSONObject())
        at = Date(timeIntervalSince1970: Double(try row.integer("at")) / 1000)
        node = try row.text("node")
        position = try row.optionalInteger("position")
        sequence = try row.optionalInteger("sequence")
        username = try row.optionalText("username")
    }
}
