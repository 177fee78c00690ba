import AssentCore
import AssentOTP
import AssentSigningProtocol
import Foundation

extension SigningProvider {
    /// How many unused codes of a counter may have been skipped.
    private static let lookAhead = 5

    /// How many codes a user may try in an hour; a right one forgets them.
    private static let tries: Int64 = 10

    /// Makes the keys of an offer for a new container.
    func makeOneTimeKeys(_ offer: Offer, for container: SigningContainerRecord) throws -> [SigningOneTimeSecret] {
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
    func offeredOneTimeKeys(of container: SigningContainerRecord, _ offer: Offer) async throws -> [OneTimeKey] {
        let known = try await store.oneTimeKeys(did: container.did)
        return try offer.keys.filter { $0.usage == .otp }.map { offered in
            guard let key = known.first(where: { $0.label == offered.label }) else {
                throw SigningRefusal(.enrolmentVoid)
            }
            return OneTimeKey(label: key.label, policy: offered.policy, uri: key.uri)
        }
    }

    /// Whether the user has a device with this key.
    func hasOneTimeKey(_ label: String, user: String) async throws -> Bool {
        for container in try await store.containers(user: user)
        where container.refusal(approving: false, at: store.now) == nil {
            if try await store.oneTimeKeys(did: container.did).contains(where: { $0.label == label }) { return true }
        }
        return false
    }

    /// Checks a code of one of the user's devices and, when it is right, spends it and all older ones. What is refused
    /// is audited.
    ///
    /// - Parameters:
    ///   - code: what the user typed.
    ///   - label: the key's name. Only keys for codes by time and by counter count.
    ///   - user: the user.
    /// - Returns: what was found.
    /// - Throws: ``EngineError``.
    func verify(oneTimeCode code: String, label: String, user: User) async throws -> OneTimePasswords.Check {
        let result = try await check(code, label, user)
        if result != .accepted {
            try await store.audit.write(
                store.record(.otpVerify, .refused, user: user.id, ["label": label, "result": "\(result)"]))
        }
        return result
    }

    private func check(_ code: String, _ label: String, _ user: User) async throws -> OneTimePasswords.Check {
        let now = store.now
        var keys: [(SigningOneTimeSecret, SigningContainerRecord)] = []
        for container in try await store.containers(user: user.id)
        where container.refusal(approving: false, at: now) == nil && container.state == .active {
            for key in try await store.oneTimeKeys(did: container.did) where key.label == label {
                keys.append((key, container))
            }
        }
        guard !keys.isEmpty else { return .notEnrolled }
        let counter = "signing:otp:\(user.id)"
        guard try await attempts.attempt(counter, limit: Self.tries, window: 3600) else { return .locked }
        var result = OneTimePasswords.Check.wrong
        for (key, container) in keys {
            guard let found = try Self.match(code, key, at: context.clock.now) else { continue }
            if try await store.spend(counter: found, of: label, container: container, at: now) {
                try await attempts.reset(counter)
                return .accepted
            }
            result = .replayed
        }
        return result
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
