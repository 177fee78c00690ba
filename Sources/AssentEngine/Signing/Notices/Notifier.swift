import AssentCore
public import AssentSigningProtocol
import AssentStore
import Logging

/// Brings a user at once what happened to a device of theirs, and that a transaction waits, beside what devices hear
/// when they ask: an e-mail, or a push message that wakes them.
///
/// What it is told has happened, and is in the audit log. It is told once by the node that did it, and not again when
/// that node ends before: nobody must rely on it.
public protocol Notifier: Sendable {
    /// Sends it, or begins to. The call that caused it waits for the return.
    func notify(_ news: DeviceNews) async

    /// Has the user's devices ask for what waits, or begins to. The call that caused it waits for the return.
    func notify(_ news: TransactionNews) async
}

/// Something that has happened to a device of a user.
public struct DeviceNews: Sendable, Hashable {
    /// What.
    public let event: DeviceEvent
    /// The issuer.
    public let issuer: String
    /// Whose device it is.
    public let userID: String
    /// The device.
    public let did: String
    /// Its name.
    public let name: String
    /// Where push messages to the device go, as its app has said; `nil` if it has said nothing.
    public let pushID: String?
    /// When, in seconds since 1970.
    public let at: Int64
}

/// A transaction that waits for a device of a user. It says nothing of what is asked: a push message must not, either.
public struct TransactionNews: Sendable, Hashable {
    /// The issuer.
    public let issuer: String
    /// Who is asked.
    public let userID: String
    /// The transaction.
    public let txn: String
    /// The only device that may answer; `nil` for each of the user's.
    public let did: String?
    /// When it expires, in seconds since 1970.
    public let expiresAt: Int64
    /// Where push messages to the active devices go that may answer, as far as their apps have said.
    public let pushIDs: [String]
}

/// Writes to the server's log, which is all that is there without another one.
struct LogNotifier: Notifier {
    let logger: Logger

    init(_ logger: Logger) { self.logger = logger }

    func notify(_ news: DeviceNews) async {
        logger.info(
            "a user's device has changed",
            metadata: ["event": "\(news.event.rawValue)", "user": "\(news.userID)", "container": "\(news.did)"])
    }

    func notify(_ news: TransactionNews) async {
        logger.debug(
            "a transaction waits for a user's device",
            metadata: ["user": "\(news.userID)", "transaction": "\(news.txn)"])
    }
}
