import AssentCore
package import AssentSigningProtocol
import Logging

/// Brings a user at once what happened to a device of theirs, beside what their other devices hear when they ask: an
/// e-mail, or a push message that wakes them.
///
/// What it is told has happened, and is in the audit log. It is told once by the node that did it, and not again when
/// that node ends before: nobody must rely on it.
package protocol Notifier: Sendable {
    /// Sends it, or begins to. The call that caused it waits for the return.
    func notify(_ news: DeviceNews) async
}

/// Something that has happened to a device of a user.
package struct DeviceNews: Sendable, Hashable {
    /// What.
    package let event: DeviceEvent
    /// The issuer.
    package let issuer: String
    /// Whose device it is.
    package let userID: String
    /// The device.
    package let did: String
    /// Its name.
    package let name: String
    /// When, in seconds since 1970.
    package let at: Int64
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
}

extension SigningProvider {
    /// Tells the user what has happened to a device.
    func tell(_ event: DeviceEvent, _ container: SigningContainerRecord) async {
        await notifier.notify(
            DeviceNews(
                event: event, issuer: iss, userID: container.userID, did: container.did, name: container.name,
                at: store.now))
    }

    /// The same if this record is what has made the device's keys count.
    func tell(_ event: DeviceEvent, _ did: String, ifBy activation: SigningActivation) async throws {
        guard let container = try await store.container(did: did), container.record == activation.hash else { return }
        await tell(event, container)
    }
}
