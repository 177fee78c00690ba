package import AssentSigningProtocol
import AssentStore

/// One question to one user, which is answered with a signature. Times are seconds since 1970.
package struct SigningTransactionRecord: Sendable, Hashable {
    /// Where it stands. All but the first never change.
    package enum State: String, SQLConstant {
        case pending = "PENDING"
        case approved = "APPROVED"
        case denied = "DENIED"
        /// The user has said that it is not theirs.
        case reported = "REPORTED"
        /// Taken back, by the user or by the asker.
        case canceled = "CANCELED"
        case expired = "EXPIRED"
        /// A wrong number or signature has ended it.
        case failed = "FAILED"
    }

    package let txn: SigningID
    /// The asker: an OAuth client, a journey or a device.
    package let clientID: String
    /// Who is asked; empty while nobody has claimed it.
    package let userID: String
    /// The only container that may answer, if there is one.
    var did: SigningID?
    /// The container that has scanned it, and alone may answer; `nil` while nobody has scanned it.
    var claimedBy: SigningID?
    let kind: DocumentKind
    /// Without regard to the time: see ``state(at:)``.
    package var state: State = .pending
    /// Why it was canceled or has failed.
    var reason: String?
    /// The status that the user chose.
    package var status: String?
    /// What its documents have in common, as JSON.
    let content: String
    /// The hash of what was asked.
    let req: SigningHash
    /// What that is the hash of, as base64url.
    let request: String
    /// The number that the user must type.
    package let matchNumber: String?
    let createdAt: Int64
    package let expiresAt: Int64
    var decidedBy: SigningID?
    /// Whether the user's own session asks: then no limit applies.
    var isOwnSession = false
    /// The policy's transaction that it completes.
    var policyTransaction: String?
    /// Tells a repeated request.
    var idempotency: Idempotency?

    /// A repeated request gets the same transaction.
    struct Idempotency: Sendable, Hashable {
        /// What the asker calls its request.
        let key: String
        let request: String
    }
}

extension SigningTransactionRecord {
    /// Whether an OAuth client has asked for it. What a journey asks is not a client's, nor what a device begins.
    func isOf(_ client: String) -> Bool { clientID == client && policyTransaction == nil && kind != .record }

    /// Whether a container may see it. What one has scanned is unknown to the others, also to those of the same user.
    func isFor(_ container: SigningContainerRecord) -> Bool {
        userID == container.userID && (did == nil || did == container.did)
            && (claimedBy == nil || claimedBy == container.did)
    }

    /// Where it stands at a time: housekeeping writes later that it has expired.
    package func state(at now: Int64) -> State { state == .pending && expiresAt <= now ? .expired : state }

    /// Why a container cannot decide it; `nil` while it is open.
    func refusal(at now: Int64) -> SigningRefusal? {
        switch state(at: now) {
        case .pending: nil
        case .approved, .denied, .reported: SigningRefusal(.alreadyDecided)
        case .canceled: SigningRefusal(decidedBy == nil ? .transactionCanceled : .alreadyDecided)
        case .expired: SigningRefusal(.transactionExpired)
        case .failed: SigningRefusal(.transactionFailed)
        }
    }

    init(_ row: SQLRow) throws {
        let request = try row.optionalText("request_key") ?? ""
        self.init(
            txn: try row.value("txn"), clientID: try row.text("client_id"),
            userID: try row.optionalText("user_id") ?? "", did: try row.optional("did"),
            claimedBy: try row.optional("claimed_by"), kind: try row.value("kind"), state: try row.value("state"),
            reason: try row.optionalText("reason"), status: try row.optionalText("status"),
            content: try row.text("content"), req: try row.value("req"), request: try row.text("request"),
            matchNumber: try row.optionalText("match_number"),
            createdAt: try row.integer("created_at"), expiresAt: try row.integer("expires_at"),
            decidedBy: try row.optional("decided_by"), isOwnSession: try row.bool("own_session"),
            policyTransaction: try row.optionalText("policy_transaction"),
            idempotency: try row.optionalText("idempotency_key").map { Idempotency(key: $0, request: request) })
    }
}

extension SigningTransactionRecord.State {
    /// What a decision makes of a transaction: the state that its receipt names.
    init(_ effect: DecisionEffect) { self = Self(rawValue: effect.state.rawValue) ?? .failed }
}

/// How many transactions and devices there may be.
package struct SigningLimits: Sendable, Hashable {
    /// Containers of a user.
    package var containers = 5
    /// Open transactions of a client and a user.
    package var openOfClient: Int64 = 5
    /// Open transactions of a user.
    package var openOfUser: Int64 = 20
    /// Transactions of a client that wait for someone who scans them.
    package var claimsOfClient: Int64 = 100
    /// Transactions of a client and a user in a minute.
    package var perMinute: Int64 = 5
    /// Transactions of a client and a user that were never answered, one after the other within an hour.
    package var unanswered: Int64 = 8

    package init() {}
}
