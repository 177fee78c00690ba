package import AssentCore
import AssentStore

/// A transaction as the store has it.
package struct TransactionRecord: Sendable, Hashable {
    /// Where a transaction stands. The first three names are AM's own.
    package enum State: String, Sendable, Hashable, CaseIterable {
        /// The advice was given.
        case created = "CREATED"
        /// Its journey runs.
        case inProgress = "IN_PROGRESS"
        /// The user has approved.
        case completed = "COMPLETED"
        /// It was used: what is left tells what became of it.
        case taken = "TAKEN"
        /// The user, or the journey, said no.
        case declined = "DECLINED"
        /// Its time is over. It stays so, even when the clock is moved back.
        case expired = "EXPIRED"
    }

    /// The id; a lower-case UUID.
    package let id: String

    /// Where it stands.
    package let state: State

    /// Everything that must be the same when it is used.
    package let binding: TransactionBinding

    /// The URL with its query, as it was sent.
    package let url: String

    /// What the user is shown, in every language that the policy has.
    package let display: [DisplayLine]

    /// When it was made, in seconds since 1970.
    package let createdAt: Int64

    /// When its time is over, in seconds since 1970.
    package let expiresAt: Int64

    /// What became of the request after it was taken.
    package let outcome: UpstreamOutcome?

    /// What the user was first shown; `nil` as long as nobody has looked.
    package var shown: ShownLines?

    /// The request of a gateway elsewhere that it was taken for; `nil` for any other.
    var attempt: TransactionAttempt?

    /// When it was taken, in seconds since 1970.
    var takenAt: Int64?

    /// The approval that the journey asks for: what is bound, for the client to compare with the request that it will
    /// repeat, and what the user is shown.
    package var approval: PendingApproval {
        let isBodyBound = binding.bound.contains(.body)
        let shown = shown ?? ShownLines(display, languages: [])
        var approval = PendingApproval(
            id: id, journey: binding.specifier, method: binding.bound.contains(.method) ? binding.method : nil,
            resource: binding.bound.contains(.query) ? url : String(url.prefix { $0 != "?" }),
            contentType: isBodyBound ? binding.mediaType : nil, bodySHA256: isBodyBound ? binding.bodyDigest : nil,
            display: shown.fields, expiresAt: expiresAt)
        approval.language = shown.language
        return approval
    }
}

extension DisplayField {
    /// The field as it is stored.
    var json: JSONValue { ["label": .string(label), "value": .string(value)] }
}

/// What became of a request whose transaction was taken.
package enum UpstreamOutcome: Sendable, Hashable {
    /// Taken, and not known to have been forwarded.
    case taken
    /// It was about to be sent; nothing is known of an answer.
    case forwarded
    /// It never reached the service.
    case notForwarded
    /// The service answered with this status.
    case answered(status: Int)
    /// It was sent, and no answer came: it may have had an effect.
    case unknown
}

extension TransactionRecord {
    init(_ row: SQLRow) throws {
        guard let state = State(rawValue: try row.text("state")) else {
            throw StoreError(.corrupt, "unknown transaction state")
        }
        let display = try (JSONValue.parse(row.text("display")).array ?? []).map(DisplayLine.init(stored:))
        self.init(
            id: try row.text("id"), state: state, binding: try TransactionBinding(row), url: try row.text("url"),
            display: display, createdAt: try row.integer("created_at"), expiresAt: try row.integer("expires_at"),
            outcome: state == .taken ? try UpstreamOutcome(row) : nil,
            shown: try row.optionalText("shown").flatMap(ShownLines.init(stored:)),
            attempt: try TransactionAttempt(row), takenAt: try row.optionalInteger("taken_at"))
    }
}

extension TransactionBinding {
    init(_ row: SQLRow) throws {
        maker = TransactionMaker(stored: try row.text("maker"))
        realm = try row.text("realm")
        policySet = try row.text("policy_set")
        policy = try row.text("policy")
        policyRevision = try row.text("policy_revision")
        strategy = try row.text("strategy")
        specifier = try row.text("specifier")
        resource = try row.text("resource")
        bound = Set(try row.text("bound").split(separator: " ").compactMap { BoundField(rawValue: String($0)) })
        query = try row.optionalText("query")
        method = try row.optionalText("method")
        mediaType = try row.optionalText("media_type")
        bodyDigest = try row.optionalText("body_sha256")
        userID = try row.text("user_id")
        sessionID = try row.text("session_id")
        sessionAuditID = try row.text("session_audit_id")
        grantID = try row.optionalText("grant_id")
        sender = try row.sender()
    }

    /// ``bound`` as the column has it.
    var boundText: String { bound.map(\.rawValue).sorted().joined(separator: " ") }
}

extension UpstreamOutcome {
    fileprivate init(_ row: SQLRow) throws {
        switch try row.optionalText("outcome") {
        case nil: self = try row.optionalInteger("forwarded_at") == nil ? .taken : .forwarded
        case "answered": self = .answered(status: Int(clamping: try row.integer("upstream_status")))
        case "notForwarded": self = .notForwarded
        default: self = .unknown
        }
    }

    /// What the audit log says of it, and the server to a client that asks what became of its request: `state`, and
    /// `status` where there is one.
    package var json: JSONValue {
        switch self {
        case .taken: ["state": "taken"]
        case .forwarded: ["state": "forwarded"]
        case .notForwarded: ["state": "notForwarded"]
        case .answered(let status): ["state": "answered", "status": .integer(status)]
        case .unknown: ["state": "unknown"]
        }
    }

    /// The columns `outcome` and `upstream_status`; `nil` for what is not an outcome yet.
    var columns: (outcome: String, status: Int?)? {
        switch self {
        case .taken, .forwarded: nil
        case .notForwarded: ("notForwarded", nil)
        case .answered(let status): ("answered", status)
        case .unknown: ("unknown", nil)
        }
    }
}
