public import AssentCore
public import AssentSigningProtocol
public import Foundation

/// One enrolment of this device with one issuer for one user.
public struct SigningContainer: Sendable, Identifiable {
    /// A key of a container.
    public struct Key: Sendable, Hashable, Identifiable {
        /// The key's thumbprint (RFC 7638).
        public let id: String
        /// What it is for.
        public let usage: SigningKeyUsage
        /// Its name, which is unique in the container.
        public let label: String
        /// The password that opens it; `nil` when it needs none.
        public let password: PasswordSlot?
    }

    /// The container's id, which is never used again after it has ended.
    public let id: String
    /// The issuer.
    public let issuer: String
    /// The issuer's name.
    public let issuerName: String
    /// What the container is called.
    public let name: String
    /// The user's id, which never changes.
    public let userID: String
    /// The user's name.
    public let userName: String
    /// The container's number, for the help desk.
    public let serial: String
    /// The state that the server signed last; ``status()`` asks for the current one.
    public let state: ContainerState
    /// When it was made, by this device's clock.
    public let createdAt: Date
    /// When its keys expire, by the server's clock.
    public let expiresAt: Date
    /// From when its keys may be renewed, by the server's clock.
    public let renewableFrom: Date
    /// From when on it may approve, by the server's clock.
    public let approvalsFrom: Date
    /// Its keys.
    public let keys: [Key]
    /// Its passwords.
    public let passwords: [SigningPassword]
    /// Texts of the app's own.
    public let properties: [String: String]
    /// While the container is unconfirmed, the digits that the user has to type (``SigningEnrolment/digits``).
    public let digits: String?

    let device: SigningDevice
    let record: SigningID
    /// Whether this app made it with its user's own session, without a code.
    let isOwn: Bool
    /// Whether that enrolment has begun and has not come to its end: to enrol again goes on where it was.
    package let isInterrupted: Bool

    /// The container of a record; `nil` for an enrolment that is not finished, and for one that is deleted.
    init?(_ stored: ContainerRecord, on device: SigningDevice) throws {
        guard stored.phase.isConfirmed, stored.deletion == nil, !stored.ended, let did = stored.did,
            let sub = stored.sub,
            let user = stored.user, let enrolment = try stored.enrolment()
        else { return nil }
        func date(_ seconds: Int?) -> Date { Date(timeIntervalSince1970: TimeInterval(seconds ?? 0)) }
        id = did.text
        issuer = stored.issuer
        issuerName = stored.issuerName
        name = stored.name ?? ""
        userID = sub
        userName = user
        serial = stored.serial ?? ""
        state = stored.state
        createdAt = date(stored.created)
        expiresAt = date(stored.expires)
        renewableFrom = date(stored.renewable)
        approvalsFrom = date(stored.approvals)
        keys = enrolment.keys.map { Key($0) }
        passwords = try stored.passwords(on: device)
        properties = stored.properties
        digits = stored.state == .unconfirmed ? try stored.enrolmentValue()?.digits : nil
        self.device = device
        record = stored.id
        isOwn = stored.isOwn
        isInterrupted = stored.isInterrupted
    }

    /// The keys with this usage and this label.
    ///
    /// - Parameters:
    ///   - usage: what they are for; `nil` for any.
    ///   - label: their name; `nil` for any.
    /// - Returns: the keys, in the order in which the server wanted them.
    public func keys(usage: SigningKeyUsage? = nil, label: String? = nil) -> [Key] {
        keys.filter { key in
            (usage.map { $0 == key.usage } ?? true) && (label.map { StrictJSON.same($0, key.label) } ?? true)
        }
    }

    /// Asks the server for the state of this container. If it has ended, its keys are removed.
    ///
    /// - Throws: ``SigningError``.
    @discardableResult
    public func status() async throws -> SigningContainerStatus { try await device.parts.containers.status(of: record) }

    /// Waits until the user has typed the digits: asks for the status every two seconds.
    ///
    /// - Returns: the container as it is then.
    /// - Throws: ``SigningError`` with code `enrolment_void` when the enrolment has ended without them;
    ///   `CancellationError`.
    public func activated() async throws -> SigningContainer {
        while true {
            switch try await status().state {
            case .unconfirmed: try await device.parts.pause()
            case .void, .revoked: throw SigningError(.enrolmentVoid)
            case .active, .suspect, .blocked: return try await device.container(id)
            }
        }
    }

    /// The ids of open transactions, at most 20, the oldest first. ``notices()`` has what came with them; the next list
    /// tells the server that the app has it.
    ///
    /// - Parameters:
    ///   - wait: how many seconds to wait for one, at most 25.
    ///   - password: the password `session`, if the container has one and it is not remembered.
    /// - Returns: texts for ``SigningDevice/retrieveTransactionInfo(_:user:)``.
    /// - Throws: ``SigningError``.
    public func transactionIDs(wait: Int = 0, password: Secret? = nil) async throws -> [String] {
        try await Documents(parts: device.parts).list(of: record, wait: wait, password: password).tickets
    }

    /// Open transactions as they come, each once.
    ///
    /// - Parameters:
    ///   - password: the password `session`, if the container has one. It is kept as long as the sequence is.
    ///   - onEvent: hears what comes besides transactions. Nothing is asked of the server meanwhile.
    /// - Returns: a sequence that waits.
    public func transactions(
        password: Secret? = nil, onEvent: (@Sendable (SigningEvent) async -> Void)? = nil
    ) -> SigningTransactions {
        SigningTransactions(container: self, password: password, onEvent: onEvent)
    }

    /// The password that opens these keys; `nil` when they need none.
    public func password(_ slot: PasswordSlot) -> SigningPassword? { passwords.first { $0.slot == slot } }

    /// Forgets what the device remembers of the container's passwords.
    public func forgetPasswords() async { await device.parts.memory.forget(record) }

    /// Gives the container another name, 1 to 128 characters.
    ///
    /// - Throws: ``SigningError``.
    public func rename(_ name: String) async throws { try await device.parts.containers.update(record, name: name) }

    /// Sets the app's own texts in place of all that there are: at most 16 of at most 256 characters, by names of 1 to
    /// 32 ASCII characters.
    ///
    /// - Throws: ``SigningError``.
    public func setProperties(_ properties: [String: String]) async throws {
        try await device.parts.containers.update(record, properties: properties)
    }

    /// Sets where push messages go; an empty text ends them.
    ///
    /// - Throws: ``SigningError``.
    public func setPushID(_ pushID: String) async throws {
        try await device.parts.containers.update(record, pushID: pushID)
    }

    /// Deletes the container: its keys are destroyed at once, and the server is told, now or as soon as it can be
    /// reached (``SigningDevice/sendQueued(onReceipt:onRefusal:)``).
    ///
    /// - Parameter reason: for the server's audit log, 1 to 1000 characters.
    /// - Returns: whether the server knows already.
    /// - Throws: ``SigningError`` with code `invalidArgument`, and what the store and the key provider throw.
    @discardableResult
    public func delete(reason: String = "USER") async throws -> Bool {
        try await device.parts.containers.delete(record, reason: reason)
    }
}

/// Which containers to find. What is `nil` is not looked at.
public struct ContainerFilter: Sendable, Hashable {
    /// The container's name.
    public var name: String?
    /// The issuer.
    public var issuer: String?
    /// The user's id or name.
    public var user: String?

    /// A filter.
    public init(name: String? = nil, issuer: String? = nil, user: String? = nil) {
        self.name = name
        self.issuer = issuer
        self.user = user
    }

    func matches(_ container: SigningContainer) -> Bool {
        func same(_ wanted: String?, _ texts: String...) -> Bool {
            wanted.map { wanted in texts.contains { StrictJSON.same($0, wanted) } } ?? true
        }
        return same(name, container.name) && same(issuer, container.issuer)
            && same(user, container.userID, container.userName)
    }
}

/// The state of a container, signed by the server.
public struct SigningContainerStatus: Sendable, Hashable {
    /// The state.
    public let state: ContainerState
    /// How many transactions are open.
    public let pending: Int
    /// From when on it may approve, by the server's clock.
    public let approvalsFrom: Date
    /// When its keys expire, by the server's clock.
    public let expiresAt: Date
    /// Its `assisted` passwords.
    public let passwords: [SlotStatus]
}

extension SigningContainer.Key {
    init(_ key: EnrolledKey) {
        self.init(id: key.kid.text, usage: key.usage, label: key.label, password: key.slot)
    }
}
