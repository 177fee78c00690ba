public import AssentSigningProtocol
public import Foundation

/// Something that has happened to another device of the user. If it was not the user, somebody else is at work.
public struct SigningNotice: Sendable, Hashable {
    /// What.
    public let event: DeviceEvent
    /// The other container.
    public let containerID: String
    /// What it is called.
    public let containerName: String
    /// When, by the server's clock.
    public let date: Date

    init(_ notice: Notice) {
        event = notice.event
        containerID = notice.did.text
        containerName = notice.name
        date = Date(timeIntervalSince1970: TimeInterval(notice.at))
    }
}

/// What a container hears besides transactions.
public enum SigningEvent: Sendable, Hashable {
    /// Something has happened to another device of the user.
    case notice(SigningNotice)
    /// The keys may be renewed from now on, and should be before they expire
    /// (``SigningContainer/renew(invite:password:)``). Each iterator says it once, and again each hour while it is so.
    /// With `needsPassword` the user has to type one for it.
    case renewalDue(needsPassword: Bool)
}

/// What was heard with the list of transactions.
struct HeardNotices {
    /// The most that is kept for an app that does not ask.
    static let limit = 64

    /// What the app has not asked for.
    var waiting: [SigningNotice] = []
    /// What the next list tells the server not to send again.
    var received: [SigningID] = []
}

extension Renewals {
    /// Whether new keys are due, by the last time that the server has signed, and whether they need a password. They
    /// are not while a reset is under way: a renewal would give it up, and the user has its digits.
    func due(_ id: SigningID) async throws -> Bool? {
        let record = try await parts.records.load(id)
        guard let renewable = record.renewable, record.serverTime >= renewable else { return nil }
        if try await parts.records.renewal(of: id)?.mayWaitForDigits(at: record.serverTime) == true { return nil }
        return !record.slots.isEmpty
    }
}

extension SigningContainer {
    /// What has happened to the user's other devices, as far as it came with lists of transactions and was not taken
    /// before; at most 64.
    ///
    /// They are in memory only, and the next list tells the server that they came, which then sends them no more. An
    /// app that lists by itself must take them after each list, and keep or show them before it lists again: else they
    /// are lost when it ends. ``transactions(password:onEvent:)`` gives each to `onEvent` before it lists again, and
    /// without `onEvent` keeps them for this.
    public func notices() async -> [SigningNotice] { await device.parts.memory.takeNotices(record) }
}
