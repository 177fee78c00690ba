import AssentSigningProtocol
import AssentStore

/// One question to one user, which is answered with a signature.
package struct SigningTransactionRecord: Sendable, Hashable {
    /// Where it stands. All but the first never change.
    package enum State: String, Sendable, Hashable, CaseIterable {
        /// It waits for an answer.
        case pending = "PENDING"
        /// The user has approved it.
        case approved = "APPROVED"
        /// The user has said no.
        case denied = "DENIED"
        /// The user has said that it is not theirs.
        case reported = "REPORTED"
        /// Taken back, by the user or by who asked.
        case canceled = "CANCELED"
        /// Its time is over.
        case expired = "EXPIRED"
        /// A wrong number or signature has ended it.
        case failed = "FAILED"
    }

    /// The id.
    package let txn: String

    /// Who asks.
    package let clientID: String

    /// Who is asked; empty while nobody has claimed it.
    package let userID: String

    /// The only container that may answer, if there is one.
    package let did: String?

    /// What it is about: `transaction`, `authentication`, `record`.
    package let kind: String

    /// Where it stands, without regard to the time.
    package var state: State = .pending

    /// Why it was canceled or has failed.
    package var reason: String?

    /// The status that the user chose.
    package var status: String?

    /// What its documents have in common, as JSON.
    package let content: String

    /// The hash of what was asked.
    package let req: String

    /// What that is the hash of, as base64url.
    package let request: String

    /// The number that the user must type.
    package let matchNumber: String?

    /// The hash of the decision that has tried its number.
    package var matchBy: String?

    /// When it was made, in seconds since 1970.
    package let createdAt: Int64

    /// When its time is over, in seconds since 1970.
    package let expiresAt: Int64

    /// The container that has decided.
    package var decidedBy: String?

    /// When that was.
    package var decidedAt: Int64?

    /// Whether the user's own session asks: then no limit counts.
    package let isOwnSession: Bool

    /// The policy's transaction that it completes.
    package let policyTransaction: String?

    /// Tells a repeated request; with it the hash of what was requested.
    package let idempotency: Idempotency?

    /// A repeated request gets the same transaction.
    package struct Idempotency: Sendable, Hashable {
        /// What the client calls its request.
        package let key: String

        /// The hash of the request.
        package let request: String

        /// A request of that name.
        package init(key: String, request: String) {
            self.key = key
            self.request = request
        }
    }

    /// A new transaction.
    package init(
        txn: String, clientID: String, userID: String, did: String?, kind: String, content: String, req: String,
        request: String, matchNumber: String?, createdAt: Int64, expiresAt: Int64, isOwnSession: Bool = false,
        policyTransaction: String? = nil, idempotency: Idempotency? = nil
    ) {
        self.txn = txn
        self.clientID = clientID
        self.userID = userID
        self.did = did
        self.kind = kind
        self.content = content
        self.req = req
        self.request = request
        self.matchNumber = matchNumber
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.isOwnSession = isOwnSession
        self.policyTransaction = policyTransaction
        self.idempotency = idempotency
    }

    /// Whether an OAuth client has asked for it. What a journey asks is no client's, nor what a device begins.
    package func isOf(_ client: String) -> Bool {
        clientID == client && policyTransaction == nil && kind != DocumentKind.record.rawValue
    }

    /// Where it stands at a time: housekeeping writes later that its time is over.
    package func state(at now: Int64) -> State { state == .pending && expiresAt <= now ? .expired : state }

    /// Why a container cannot decide it; `nil` while it is open.
    package func refusal(at now: Int64) -> SigningRefusal? {
        switch state(at: now) {
        case .pending: nil
        case .approved, .denied, .reported: SigningRefusal(.alreadyDecided)
        case .canceled: SigningRefusal(decidedBy == nil ? .transactionCanceled : .alreadyDecided)
        case .expired: SigningRefusal(.transactionExpired)
        case .failed: SigningRefusal(.transactionFailed)
        }
    }

    init(_ row: SQLRow) throws {
        guard let state = State(rawValue: try row.text("state")) else {
            throw StoreError(.corrupt, "unknown state of a transaction to sign")
        }
        let key = try row.optionalText("idempotency_key")
        let request = try row.optionalText("request_key")
        self.init(
            txn: try row.text("txn"), clientID: try row.text("client_id"),
            userID: try row.optionalText("user_id") ?? "",
            did: try row.optionalText("did"), kind: try row.text("kind"), content: try row.text("content"),
            req: try row.text("req"), request: try row.text("request"),
            matchNumber: try row.optionalText("match_number"), createdAt: try row.integer("created_at"),
            expiresAt: try row.integer("expires_at"), isOwnSession: try row.bool("own_session"),
            policyTransaction: try row.optionalText("policy_transaction"),
            idempotency: key.map { Idempotency(key: $0, request: request ?? "") })
        self.state = state
        reason = try row.optionalText("reason")
        status = try row.optionalText("status")
        matchBy = try row.optionalText("match_by")
        decidedBy = try row.optionalText("decided_by")
        decidedAt = try row.optionalInteger("decided_at")
    }
}

/// How many transactions and devices there may be.
package struct SigningLimits: Sendable, Hashable {
    /// Containers of a user.
    package var containers = 5

    /// Open transactions of a client and a user.
    package var openOfClient: Int64 = 5

    /// Open transactions of a user.
    package var openOfUser: Int64 = 20

    /// Transactions of a client that wait for whoever scans them.
    package var claimsOfClient: Int64 = 100

    /// Transactions of a client and a user in a minute.
    package var perMinute: Int64 = 5

    /// Transactions of a client and a user that were never answered, one after the other within an hour.
    package var unanswered: Int64 = 8

    /// The standard limits.
    package init() {}
}
