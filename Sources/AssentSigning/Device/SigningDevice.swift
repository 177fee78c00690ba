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
    nonisolated let parts: DeviceParts

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
        self.init(
            store: store, keys: keys, transport: transport, configuration: configuration,
            surroundings: Surroundings(clock: clock, random: random, logger: logger))
    }

    /// What makes a guess of a password expensive.
    package typealias PasswordStretching =
        @Sendable (
            _ password: NormalizedPassword, _ salt: [UInt8], _ cost: PasswordCost
        ) throws(SigningProtocolError) -> Secret

    /// What a device gets from outside besides its store, its keys and its way to the servers.
    package struct Surroundings: Sendable {
        var clock: any WallClock
        var random: any RandomSource
        var logger: Logger
        var uptime: @Sendable () -> Duration
        var stretch: PasswordStretching = { password, salt, cost throws(SigningProtocolError) in
            try password.stretched(salt: salt, cost: cost)
        }

        /// Those of an app: its monotonic clock is the system's, and a guess of a password costs what the policy says.
        /// Tests pass others.
        package init(
            clock: any WallClock, random: any RandomSource = SystemRandom(), logger: Logger,
            uptime: (@Sendable () -> Duration)? = nil, stretch: PasswordStretching? = nil
        ) {
            let start = ContinuousClock.now
            (self.clock, self.random, self.logger) = (clock, random, logger)
            self.uptime = { start.duration(to: .now) }
            if let uptime { self.uptime = uptime }
            if let stretch { self.stretch = stretch }
        }
    }

    /// A device in other surroundings, for tests.
    package init(
        store: any SecretStore, keys: any KeyProvider, transport: any HTTPTransport,
        configuration: SigningDeviceConfiguration = SigningDeviceConfiguration(), surroundings: Surroundings
    ) {
        parts = DeviceParts(
            records: ContainerStore(store: store), keys: keys,
            http: SigningHTTP(transport: transport, limits: configuration.limits), configuration: configuration,
            clock: surroundings.clock, random: surroundings.random, logger: surroundings.logger,
            uptime: surroundings.uptime, stretch: surroundings.stretch)
    }

    // MARK: Containers

    /// The containers of this device that fit a filter, the oldest first.
    ///
    /// - Throws: ``SigningError``.
    public func containers(matching filter: ContainerFilter = ContainerFilter()) async throws -> [SigningContainer] {
        try await parts.records.all().compactMap { try SigningContainer($0, on: self) }.filter(filter.matches)
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
        try await containers(matching: ContainerFilter(user: user)).single()
    }

    /// Sends what could not be sent before: deletions, and decisions that were signed. Call it when the app starts and
    /// when the network is back.
    ///
    /// A decision whose receipt was lost is sent with the same bytes, and the server gives the receipt that it gave
    /// before, also when the transaction has expired since: so the user learns what became of it. Where the server
    /// refuses it for good, it is dropped. So is one of a container that the server does not know any more
    /// (`unknownContainer`), a day after its transaction has ended: the server may have taken it, and cannot tell.
    ///
    /// - Parameters:
    ///   - onReceipt: hears the receipt of each decision, also where another call fails later.
    ///   - onRefusal: hears why the server refused a decision for good; ``SigningError/transactionID`` names it.
    /// - Throws: what the first call that failed threw, after all were tried.
    public func sendQueued(
        onReceipt: (SigningReceipt) async -> Void = { _ in }, onRefusal: (SigningError) async -> Void = { _ in }
    ) async throws {
        try await SendQueue(parts: parts).send(onReceipt: onReceipt, onRefusal: onRefusal)
    }

    /// The transactions that were answered on this device and whose receipt is missing: the server may have taken the
    /// answer. ``sendQueued(onReceipt:onRefusal:)`` finds out.
    ///
    /// - Returns: the transactions' ids.
    /// - Throws: what the store throws.
    public func unreceiptedTransactions() async throws -> [String] {
        var ids: [String] = []
        for record in try await parts.records.all() {
            guard let did = record.did else { continue }
            ids += try await parts.records.decisions(of: did).map(\.txn.text)
        }
        return ids
    }

    // MARK: Enrolments

    /// Enrols this device: makes keys and has the server accept them. Then the user types the digits of the result into
    /// the page that made the invite, and the container becomes active.
    ///
    /// If it fails on the way, call it again with the same invite, or ``resumeEnrolment(_:password:)``: it goes on
    /// where it was.
    ///
    /// - Parameters:
    ///   - invite: what was scanned or typed.
    ///   - name: what the container is to be called, 1 to 128 characters.
    ///   - pushID: where push messages go.
    ///   - password: asks the user for each password that the server's policy wants. Without it such an enrolment
    ///     stops with code `passwordRequired`.
    /// - Returns: the digits, and the names that are shown with them.
    /// - Throws: ``SigningError``, for example with code `invalid_code`, `untrustedIssuer`, `untrustedIdentity`,
    ///   `protectionPolicy`, `invalidPassword` with the rule that a password breaks; and what `password` throws.
    public func enrol(
        _ invite: SigningInvite, name: String? = nil, pushID: String? = nil, password: SigningPasswordPrompt? = nil
    ) async throws -> SigningEnrolment {
        let enrolments = Enrolments(parts: parts)
        return try await enrolments.resume(enrolments.begin(invite, name: name, pushID: pushID), password)
    }

    /// Enrols this device for the user who is signed in in this app: makes the invite with the user's own session, and
    /// sends the digits that the device has computed. No person compares these digits, so this rests on the session and
    /// on the transport's pins.
    ///
    /// If it fails on the way, call it again: it goes on where it was. What another user has left here is not taken for
    /// this one's.
    ///
    /// - Parameters:
    ///   - issuer: where the user is signed in.
    ///   - session: carries calls with the user's session, which must be fresh.
    ///   - name: what the container is to be called, 1 to 128 characters.
    ///   - pushID: where push messages go.
    ///   - password: as for ``enrol(_:name:pushID:password:)``.
    /// - Returns: the container, which is active.
    /// - Throws: ``SigningError``, for example with code `freshAuthenticationRequired`, `digitsWrong`, `deviceLimit`;
    ///   what `session` throws.
    package func enrol(
        at issuer: String, with session: any HTTPTransport, name: String?, pushID: String?,
        password: SigningPasswordPrompt?
    ) async throws -> SigningContainer {
        let calls = InviteCalls(
            http: SigningHTTP(transport: session, limits: parts.configuration.limits), issuer: issuer)
        return try await container(
            OwnEnrolments(parts: parts, calls: calls).enrol(name: name, pushID: pushID, password: password))
    }

    /// Goes on with an enrolment that was interrupted.
    ///
    /// - Parameters:
    ///   - id: the enrolment.
    ///   - password: as for ``enrol(_:name:pushID:password:)``. A `local` password may be asked again.
    /// - Returns: the digits, and the names that are shown with them.
    /// - Throws: ``SigningError`` with code `invalidContainer` when there is none with this id, `enrolment_void` when
    ///   the process has ended between the making of keys behind an `assisted` password and the server's answer: begin
    ///   again with a new invite.
    public func resumeEnrolment(
        _ id: UnfinishedEnrolment.ID, password: SigningPasswordPrompt? = nil
    ) async throws -> SigningEnrolment {
        guard let id = SigningID(text: id) else { throw SigningError(.invalidContainer) }
        return try await Enrolments(parts: parts).resume(id, password)
    }

    /// Enrolments that were interrupted, the oldest first.
    ///
    /// - Throws: ``SigningError`` with code `secureData`.
    public func unfinishedEnrolments() async throws -> [UnfinishedEnrolment] {
        try await parts.records.all().filter { !$0.phase.isConfirmed && !$0.ended }.map(UnfinishedEnrolment.init)
    }

    /// Gives up an enrolment that was interrupted, and removes its keys. The server forgets it by itself.
    ///
    /// - Throws: ``SigningError`` with code `invalidContainer` when there is none with this id, or it is finished.
    public func abandonEnrolment(_ id: UnfinishedEnrolment.ID) async throws {
        guard let id = SigningID(text: id), try await !parts.records.load(id).phase.isConfirmed else {
            throw SigningError(.invalidContainer)
        }
        try await parts.containers.removeAll(of: parts.records.modify(id) { $0.ended = true })
    }

    // MARK: Transactions

    /// Reads a transaction's id: of a push message, of ``SigningContainer/transactionIDs(wait:password:)``, or of a QR
    /// code.
    /// Nothing is sent.
    ///
    /// - Parameters:
    ///   - id: the compact text.
    ///   - user: which user's container is meant, when several fit: the id or the name.
    /// - Returns: whose transaction it is, and how to get it.
    /// - Throws: ``SigningError`` with code `invalidArgument` when it is no such id, `invalidContainer` when it is for
    ///   none of the containers, `inexplicitContainer` when several fit, `serverAuthentication` when it is forged.
    public func retrieveTransactionInfo(_ id: String, user: String? = nil) async throws -> SigningTransactionInfo {
        try await Documents(parts: parts).info(id, user: user, on: self)
    }
}

extension [SigningContainer] {
    /// The only one.
    ///
    /// - Throws: ``SigningError`` with code `invalidContainer` when there is none, `inexplicitContainer` with the users
    ///   when there are several.
    func single() throws(SigningError) -> SigningContainer {
        guard let first else { throw SigningError(.invalidContainer) }
        guard count == 1 else {
            var error = SigningError(.inexplicitContainer)
            error.users = map(\.userID)
            throw error
        }
        return first
    }
}
