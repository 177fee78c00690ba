public import AssentCore
import AssentJOSE
import AssentSigningProtocol
public import Logging

/// A device that its user can enrol with issuers, and that shows and signs transactions: the SDK's side of the protocol
/// in `docs/transaction-signing.md`.
///
/// ```swift
/// let enrolment = try await device.enrol(SigningInvite(scanned: qrCode), name: "Ana's laptop")
/// await screen.show(enrolment)  // the user types its digits into the page that shows the QR code
///
/// let container = try await device.container(enrolment.containerID).activated()
/// for id in try await container.transactionIDs(wait: 25) {
///     let transaction = try await device.retrieveTransactionInfo(id).transaction()
///     let answer = await screen.ask(transaction.displayed, transaction.allowedStatuses)
///     try await transaction.setStatus(answer.status, number: answer.number)
/// }
/// ```
///
/// What must not be forgotten is in `store` before the call that needs it: an enrolment goes on after a crash, and a
/// decision that was signed is sent again with the same bytes. Several processes may share a store.
///
/// Its methods throw ``SigningError``, and what the store and the key provider throw.
public actor SigningDevice {
    let records: ContainerStore
    let keys: any KeyProvider
    let calls: SigningCalls
    let configuration: SigningDeviceConfiguration
    let clock: any WallClock
    let random: any RandomSource
    let logger: Logger
    let uptime: @Sendable () -> Duration
    let stretch: PasswordStretching

    /// The newest nonce of each issuer.
    var nonces: [String: String] = [:]

    /// The newest decisions that have a receipt, by container and transaction.
    var decided: [[SigningID]: (decision: String, receipt: SigningReceipt)] = [:]

    /// What is remembered of passwords, by record and slot.
    var remembered: [[String]: RememberedPassword] = [:]

    /// When a `local` password was wrong last, by record and slot.
    var failedAt: [[String]: Duration] = [:]

    /// Private keys that an enrolment has sealed and still needs, by record and label: they cannot be opened again
    /// before the enrolment is complete.
    var unsealedKeys: [SigningID: [String: Secret]] = [:]

    /// What was heard of the user's other devices, by record.
    var heardNotices: [SigningID: HeardNotices] = [:]

    /// Keys of the session that were opened by what ``SigningDeviceConfiguration/sessionPassword`` has asked for, by
    /// record.
    var openSessions: [SigningID: OpenSession] = [:]

    /// Old keys behind a password that are to vouch for new ones, by record: while a renewal needs them.
    var endorsers: [SigningID: SoftwareSigningKey] = [:]

    /// A device with what is in `store` and `keys`. Nothing is sent.
    ///
    /// - Parameters:
    ///   - store: where containers, enrolments and decisions are kept.
    ///   - keys: what makes and holds the private keys.
    ///   - transport: what carries requests.
    ///   - configuration: what the app allows.
    ///   - clock: for deadlines, and for the order of containers; no decision depends on it.
    ///   - random: where ids and nonces come from.
    ///   - logger: hears ids of containers and transactions, and codes of errors.
    public init(
        store: any SecretStore, keys: any KeyProvider, transport: any HTTPTransport,
        configuration: SigningDeviceConfiguration = SigningDeviceConfiguration(),
        clock: any WallClock = SystemClock(), random: any RandomSource = SystemRandom(),
        logger: Logger = Logger(label: "assent.signing")
    ) {
        let start = ContinuousClock.now
        self.init(
            store: store, keys: keys, transport: transport, configuration: configuration, clock: clock, random: random,
            logger: logger, uptime: { start.duration(to: .now) })
    }

    /// What makes a guess of a password expensive.
    package typealias PasswordStretching =
        @Sendable (
            _ password: NormalizedPassword, _ salt: [UInt8], _ cost: PasswordCost
        ) throws(SigningProtocolError) -> Secret

    /// A device whose monotonic clock is `uptime` and whose guesses cost what `stretch` takes, for tests.
    package init(
        store: any SecretStore, keys: any KeyProvider, transport: any HTTPTransport,
        configuration: SigningDeviceConfiguration, clock: any WallClock, random: any RandomSource, logger: Logger,
        uptime: @escaping @Sendable () -> Duration,
        stretch: @escaping PasswordStretching = { password, salt, cost throws(SigningProtocolError) in
            try password.stretched(salt: salt, cost: cost)
        }
    ) {
        records = ContainerStore(store: store)
        self.keys = keys
        calls = SigningCalls(transport: transport, limits: configuration.limits)
        self.configuration = configuration
        self.clock = clock
        self.random = random
        self.logger = logger
        self.uptime = uptime
        self.stretch = stretch
    }

    // MARK: Containers

    /// The containers of this device that fit a filter, the oldest first.
    ///
    /// - Throws: ``SigningError``.
    public func containers(matching filter: ContainerFilter = ContainerFilter()) async throws -> [SigningContainer] {
        try await records.all().compactMap { try SigningContainer($0, on: self) }.filter(filter.matches)
    }

    /// The container with this id.
    ///
    /// - Throws: ``SigningError`` with code `invalidContainer`.
    public func container(_ id: String) async throws -> SigningContainer {
        guard let container = try await containers().first(where: { StrictJSON.same($0.id, id) }) else {
            throw SigningError(.invalidContainer)
        }
        return container
    }

    /// The container of a user; without one, the only container.
    ///
    /// - Parameter user: the user's id or name.
    /// - Returns: the container.
    /// - Throws: ``SigningError`` with code `invalidContainer` when there is none, `inexplicitContainer` with the users
    ///   when there are several.
    public func container(of user: String? = nil) async throws -> SigningContainer {
        let fitting = try await containers(matching: ContainerFilter(user: user))
        guard let first = fitting.first else { throw SigningError(.invalidContainer) }
        guard fitting.count == 1 else {
            var error = SigningError(.inexplicitContainer)
            error.users = fitting.map(\.userID)
            throw error
        }
        return first
    }

    /// Sends what could not be sent before: deletions, and decisions that were signed. Call it when the app starts and
    /// when the network is back.
    ///
    /// A decision whose receipt was lost is sent with the same bytes, and the server gives the receipt that it gave
    /// before: so the user learns what became of it. Where the server refuses it for good, it is dropped.
    ///
    /// - Parameters:
    ///   - onReceipt: hears the receipt of each decision, also where another call fails later.
    ///   - onRefusal: hears why the server refused a decision for good; ``SigningError/transactionID`` names it.
    /// - Throws: what the first call that failed threw, after all were tried.
    public func sendQueued(
        onReceipt: (SigningReceipt) async -> Void = { _ in }, onRefusal: (SigningError) async -> Void = { _ in }
    ) async throws {
        var errors: [any Error] = []
        for record in try await records.all() {
            let known = errors.count
            do {
                for send in try await queued(for: record) {
                    do {
                        if let receipt = try await send() { await onReceipt(receipt) }
                    } catch {
                        errors.append(error)
                        if let refusal = error as? SigningError, refusal.transactionID != nil {
                            await onRefusal(refusal)
                        }
                    }
                }
            } catch {
                errors.append(error)
            }
            guard errors.count > known else { continue }
            logger.info("what was queued could not be sent", metadata: ["container": "\(record.did?.text ?? "-")"])
        }
        if let first = errors.first { throw first }
    }

    /// The transactions that were answered on this device and whose receipt is missing: the server may have taken the
    /// answer. ``sendQueued(onReceipt:onRefusal:)`` finds out.
    ///
    /// - Returns: the transactions' ids.
    /// - Throws: what the store throws.
    public func unreceiptedTransactions() async throws -> [String] {
        var ids: [String] = []
        for record in try await records.all() {
            guard let did = record.did else { continue }
            ids += try await records.decisions(of: did).map(\.txn.text)
        }
        return ids
    }

    /// What a container has to send, and what a decision among it gets. None of it keeps the rest from being sent.
    private func queued(for record: ContainerRecord) async throws -> [() async throws -> SigningReceipt?] {
        func plain(_ send: @escaping () async throws -> Void) -> () async throws -> SigningReceipt? {
            {
                try await send()
                return nil
            }
        }
        if record.ended { return [plain { try await self.removeAll(of: record) }] }
        if record.deletion != nil { return [plain { try await self.sendDeletion(record.id) }] }
        var queued: [() async throws -> SigningReceipt?] = []
        for slot in record.slots where slot.confirmation != nil {
            queued.append(
                plain {
                    try await self.withCurrentKeys(record.id) {
                        try await self.alone(record.id, slot.slot) {
                            try await self.sendConfirmation(record.id, slot.slot)
                        }
                    }
                })
        }
        if let did = record.did {
            for decision in try await records.decisions(of: did) {
                queued.append { try await self.sendQueued(decision, record) }
            }
        }
        if try await records.renewal(of: record.id) != nil {
            queued.append(plain { try await self.finishRenewal(record.id) })
        }
        return queued
    }

    private func sendQueued(_ decision: DecisionRecord, _ record: ContainerRecord) async throws -> SigningReceipt? {
        // Only a time that the server signed says that a transaction is over.
        if decision.expires < record.serverTime {
            try await records.remove(decision)
            return nil
        }
        do {
            return try await send(decision, record.id)
        } catch var error as SigningError where error.code.endsTransaction {
            // Nobody signs a refusal, and the list of what is open is signed: what is open there is sent again.
            guard let isListed = try? await mayBeListed(decision.txn, record.id), !isListed else { throw error }
            try await records.remove(decision)
            error.transactionID = decision.txn.text
            throw error
        }
    }

    // MARK: Keys

    func signingKey(_ record: ContainerRecord, _ usage: SigningKeyUsage, _ label: String) async throws -> any SigningKey
    {
        guard let key = try await keys.signingKey(named: record.keyName(usage, label)) else {
            throw SigningError(.credentialsLost)
        }
        return key
    }

    func deviceKey(_ record: ContainerRecord) async throws -> any SigningKey {
        try await signingKey(record, .device, "")
    }

    /// The key that decrypts replies; it may need the password of the session.
    func transportKey(_ record: ContainerRecord, _ password: Secret? = nil) async throws -> any KeyAgreementKey {
        guard let offered = try record.offerContent()?.keys.first(where: { $0.usage == .transport }) else {
            throw SigningError(.credentialsLost)
        }
        if let slot = offered.slot {
            return try await sessionKey(record, slot, offered.label, password)
        }
        guard let key = try await keys.agreementKey(named: record.keyName(.transport, offered.label)) else {
            throw SigningError(.credentialsLost)
        }
        return key
    }

    /// Removes a container of which the server, or the app for an unfinished one, said that it has ended.
    func removeAll(of record: ContainerRecord) async throws {
        try await removeKeys(of: record)
        if let renewal = try await records.renewal(of: record.id) {
            let isTaken = record.keyID == renewal.next.keyID
            if isTaken { try await removeOldKeys(renewal) } else { try await give(up: renewal) }
        }
        try await keys.removeKey(named: record.keyName(.device, ""))
        if let did = record.did {
            for decision in try await records.decisions(of: did) { try await records.remove(decision) }
            try await records.removeOneTimeKeys(of: did)
        }
        try await records.remove(record.id)
    }

    /// Removes all keys but the device key, and that of a renewal of which the server has keys.
    func removeKeys(of record: ContainerRecord) async throws {
        forget(record.id)
        forgetSealedKeys(record.id)
        if !record.slots.isEmpty {
            try await records.modify(record.id) { record in
                for index in record.slots.indices { record.slots[index].shred() }
            }
        }
        if try record.offerContent()?.slots.isEmpty == false { try await keys.removeKey(named: record.sealingKeyName) }
        for key in try record.offerContent()?.keys ?? [] where key.usage != .device && key.usage != .otp {
            try await keys.removeKey(named: record.keyName(key.usage, key.label))
        }
        if let did = record.did { try await records.removeOneTimeKeys(of: did) }
        guard let renewal = try await records.renewal(of: record.id) else { return }
        if renewal.next.echo == nil { try await give(up: renewal) } else { try await removeKeys(of: renewal) }
    }
}
