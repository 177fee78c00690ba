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

    /// A notifier that writes here.
    init(_ logger: Logger) {
        self.logger = logger
    }

    /// Writes one line.
    func notify(_ news: DeviceNews) async {
        logger.info(
            "a user's device has changed",
            metadata: ["event": "\(news.event.rawValue)", "user": "\(news.userID)", "container": "\(news.did)"])
    }

    /// Writes one line.
    func notify(_ news: TransactionNews) async {
        logger.debug(
            "a transaction waits for a user's device",
            metadata: ["user": "\(news.userID)", "transaction": "\(news.txn)"])
    }
}

extension SigningProvider {
    /// Tells the user what has happened to a device.
    func tell(_ event: DeviceEvent, _ container: SigningContainerRecord) async {
        await notifier.notify(
            DeviceNews(
                event: event, issuer: iss, userID: container.userID, did: container.did, name: container.name,
                pushID: container.pushID, at: store.now))
    }

    /// The same if this record is what has made the device's keys count.
    func tell(_ event: DeviceEvent, _ did: String, ifBy activation: SigningActivation) async throws {
        guard let container = try await store.container(did: did), container.record == activation.hash else { return }
        await tell(event, container)
    }

    /// Tells the user that a transaction waits. One that is to be scanned has no user yet.
    func tell(of made: SigningTransactionRecord) async {
        guard !made.userID.isEmpty else { return }
        // Nothing but its log would use them: that saves each transaction a look-up.
        let pushIDs = notifier is LogNotifier ? [] : await made.pushIDs(issuer: iss, in: context)
        await notifier.notify(
            TransactionNews(
                issuer: iss, userID: made.userID, txn: made.txn, did: made.did, expiresAt: made.expiresAt,
                pushIDs: pushIDs))
    }
}

extension SigningTransactionRecord {
    /// Where push messages to the devices go that may answer. What made the transaction does not fail with this.
    func pushIDs(issuer: String, in context: EngineContext) async -> [String] {
        do {
            return try await context.database.run(
                .read(
                    """
                    SELECT push_id FROM signing_containers
                    WHERE iss = \(issuer) AND user_id = \(userID) AND state = 'ACTIVE' AND push_id IS NOT NULL
                        AND \(did.map { "did = \($0)" as SQL } ?? "1 = 1")
                    ORDER BY number
                    """)
            ).map { try $0.text("push_id") }
        } catch {
            context.logger.warning("push addresses cannot be read", metadata: ["error": "\(error)"])
            return []
        }
    }
}
