import AssentCore
import AssentOTP
import AssentSigningProtocol
import AssentStore
import Foundation

/// One-time codes whose keys users' devices have.
struct SigningCodes: SigningPart {
    let realm: SigningRealm

    /// How many unused codes of a counter may have been skipped.
    private static let lookAhead = 5

    /// How many codes a user may try in an hour; a right one forgets them.
    private static let tries: Int64 = 10

    /// The name under which a user's attempts are counted.
    static func counter(userID: String) -> String { "signing:otp:\(userID)" }

    /// The keys of a container, in the order of its offer; none when it has ended.
    func keys(of did: SigningID) async throws -> [SigningOneTimeSecret] {
        try await store.all(OneTimeKeySQL.keys(of: did)).map { try SigningOneTimeSecret($0, context) }
    }

    /// Makes the keys of an offer for a new container.
    func make(_ offer: Offer, for container: SigningContainerRecord) throws -> [SigningOneTimeSecret] {
        try offer.keys.filter { $0.usage == .otp }.map { key in
            guard let made = settings.oneTimeKeys.first(where: { $0.label == key.label }) else {
                // The settings are others since the offer was made.
                throw SigningRefusal(.enrolmentVoid)
            }
            let uri = try made.makeURI(
                issuer: settings.name, account: container.username, serial: container.serial, random: context.random)
            return SigningOneTimeSecret(label: key.label, policy: key.policy, uri: uri)
        }
    }

    /// The keys of a container as a device gets them: those of its offer, in the offer's order.
    func offered(of container: SigningContainerRecord, _ offer: Offer) async throws -> [OneTimeKey] {
        let known = try await keys(of: container.did)
        return try offer.keys.filter { $0.usage == .otp }.map { offered in
            guard let key = known.first(where: { $0.label == offered.label }) else {
                throw SigningRefusal(.enrolmentVoid)
            }
            return OneTimeKey(label: key.label, policy: offered.policy, uri: key.uri)
        }
    }

    /// Whether the user has a device with this key.
    func hasKey(_ label: String, user: String) async throws -> Bool {
        try await !usable(label, user: user, at: now).isEmpty
    }

    /// The keys of that name which the devices of a user have that are not blocked and have not ended. Devices and keys
    /// are read at once, whether or not there are any: how long it takes must not tell who has a device.
    private func usable(
        _ label: String, user: String, at now: Int64
    ) async throws -> [(key: SigningOneTimeSecret, container: SigningContainerRecord)] {
        let rows = try await store.together([
            ContainerSQL.containers(of: user, issuer: iss), OneTimeKeySQL.keys(label, ofUser: user, issuer: iss),
        ])
        guard rows.count == 2 else { return [] }
        var keys: [SigningID: SQLRow] = [:]
        for row in rows[1] {
            let did: SigningID = try row.value("did")
            keys[did] = row
        }
        var found: [(key: SigningOneTimeSecret, container: SigningContainerRecord)] = []
        for row in rows[0] {
            let container = try SigningContainerRecord(row)
            guard container.refusal(approving: false, at: now) == nil, let key = keys[container.did] else { continue }
            found.append((key: try SigningOneTimeSecret(key, context), container: container))
        }
        return found
    }

    /// Checks a code of one of the user's devices and, when it is right, spends it and all older ones. What is refused
    /// is audited. Only keys of that name for codes by time and by counter are asked.
    ///
    /// - Throws: ``EngineError``.
    func verify(_ code: String, label: String, user: User) async throws -> OneTimePasswords.Check {
        let result = try await check(code, label, user)
        if result != .accepted {
            try await store.writeRefusal(
                .otpVerify, nil, user: user.id, ["label": label, "result": "\(result)"])
        }
        return result
    }

    private func check(_ code: String, _ label: String, _ user: User) async throws -> OneTimePasswords.Check {
        let now = now
        let active = try await usable(label, user: user.id, at: now).filter { $0.container.state == .active }
        guard !active.isEmpty else { return .notEnrolled }
        let counter = Self.counter(userID: user.id)
        guard try await realm.attempts.attempt(counter, limit: Self.tries, window: 3600) else { return .locked }
        var result = OneTimePasswords.Check.wrong
        for (key, container) in active {
            guard let found = try Self.match(code, key, at: context.clock.now) else { continue }
            if try await spend(found, of: label, container, at: now) {
                try await realm.attempts.reset(counter)
                return .accepted
            }
            result = .replayed
        }
        return result
    }

    /// Spends a code and all older ones of its key.
    ///
    /// - Returns: false when it or a newer one was spent before, or the container is not active any more.
    private func spend(
        _ counter: Int64, of label: String, _ container: SigningContainerRecord, at now: Int64
    ) async throws -> Bool {
        let did = container.did
        let spend: SQL = """
            UPDATE signing_otp_keys SET counter = \(counter + 1)
            WHERE did = \(did) AND label = \(label) AND counter <= \(counter)
                AND \(ContainerSQL.isUsable(did, at: now))
            """
        return try await store.changes([
            .one(spend, else: .changed), store.note(.otpVerify, user: container.userID, did: did, ["label": label]),
        ])
    }

    /// The counter value or time step of a code.
    private static func match(_ code: String, _ key: SigningOneTimeSecret, at now: Date) throws -> Int64? {
        guard let account = try? OTPAuthURI(key.uri.reveal()) else { return nil }
        if let totp = try account.totp() { return totp.matchingStep(code, at: now) }
        guard let hotp = try account.hotp() else { return nil }
        let found = hotp.matchingCounter(code, from: UInt64(max(0, key.counter)), lookAhead: lookAhead)
        return found.flatMap { Int64(exactly: $0) }
    }
}
