public import AssentCore
import AssentOTP
import AssentSigningProtocol
public import Foundation

/// A key of a container that makes one-time codes.
public struct SigningOneTimeKey: Sendable, Hashable, Identifiable {
    /// How its codes are made.
    public enum Kind: String, Sendable, Hashable {
        /// From the time (TOTP).
        case time
        /// From a counter (HOTP).
        case counter
        /// From a challenge that somebody else gives (OCRA).
        case challenge
    }

    /// Its name, which is unique in the container.
    public let label: String

    /// How its codes are made.
    public let kind: Kind

    /// The name.
    public var id: String { label }
}

/// A code that proves once that somebody has the container.
public struct SigningOneTimeCode: Sendable {
    /// The key's name.
    public let label: String

    /// The code.
    public let code: Secret

    /// When the next code takes its place, by this device's clock; `nil` for a code that does not come from the time.
    public let expiresAt: Date?
}

extension SigningContainer {
    /// The keys for one-time codes, sorted by label.
    ///
    /// - Throws: ``SigningError`` with code `secureData`.
    public func oneTimeKeys() async throws -> [SigningOneTimeKey] { try await device.oneTimeKeys(record) }

    /// Makes a code. Nothing is sent.
    ///
    /// A code from the time is good only where this device's clock is right within about half a minute. A code from a
    /// counter takes that counter's value for good.
    ///
    /// - Parameters:
    ///   - label: the key's name; without one the container's only key.
    ///   - challenge: what somebody else asks, for a key that answers challenges.
    /// - Returns: the code.
    /// - Throws: ``SigningError`` with code `invalidArgument` when there is no such key, or it takes a challenge that
    ///   is not given, or none and one is given; `credentialsLost` when the container was deleted.
    public func oneTimeCode(label: String? = nil, challenge: String? = nil) async throws -> SigningOneTimeCode {
        try await device.oneTimeCode(record, label: label, challenge: challenge)
    }
}

extension SigningDevice {
    /// Keeps the keys that came with an enrolment: exactly those that were offered.
    func keep(_ keys: [OneTimeKey], offered record: ContainerRecord) async throws {
        guard let did = record.did, let offer = try record.offerContent() else { throw SigningError(.internal) }
        let offered = offer.keys.filter { $0.usage == .otp }
        guard offered.map(\.label) == keys.map(\.label), keys.allSatisfy({ $0.slot == nil }) else {
            throw SigningError(.offerRefused, "The keys for one-time codes are not those of the offer.")
        }
        for key in keys {
            let kept = OneTimeKeyRecord(
                did: did, label: key.label, uri: key.uri, counter: OneTimeKeyRecord.firstCounter(key.uri))
            do {
                _ = try kept.generator()
            } catch {
                throw SigningError(.offerRefused, "A key for one-time codes cannot be used. \(error.detail)")
            }
            try await records.keep(kept)
        }
    }

    func oneTimeKeys(_ id: SigningID) async throws -> [SigningOneTimeKey] {
        guard let did = try await records.load(id).did else { return [] }
        return try await records.oneTimeKeys(of: did).map { key in
            let kind: SigningOneTimeKey.Kind =
                switch try Self.generator(key) {
                case .time: .time
                case .counter: .counter
                case .challenge: .challenge
                }
            return SigningOneTimeKey(label: key.label, kind: kind)
        }
    }

    func oneTimeCode(_ id: SigningID, label: String?, challenge: String?) async throws -> SigningOneTimeCode {
        let record = try await records.load(id)
        guard let did = record.did, record.deletion == nil, !record.ended else {
            throw SigningError(.credentialsLost)
        }
        let keys = try await records.oneTimeKeys(of: did)
        let fitting = keys.filter { key in label.map { StrictJSON.same($0, key.label) } ?? true }
        guard let key = fitting.first, fitting.count == 1 else {
            let names = keys.map(\.label).joined(separator: ", ")
            throw SigningError(
                .invalidArgument,
                keys.isEmpty ? "The container has no keys for one-time codes." : "Name one of the keys: \(names).")
        }
        let generator = try Self.generator(key)
        if case .challenge = generator {
        } else if challenge != nil {
            throw SigningError(.invalidArgument, "This key takes no challenge.")
        }
        switch generator {
        case .time(let totp):
            return SigningOneTimeCode(
                label: key.label, code: Secret(totp.code(at: clock.now)), expiresAt: totp.end(ofStepAt: clock.now))
        case .counter(let hotp):
            let counter = try await records.takeCounter(did, key.label)
            return SigningOneTimeCode(
                label: key.label, code: Secret(hotp.code(counter: UInt64(counter))), expiresAt: nil)
        case .challenge(let ocra):
            guard let challenge else {
                throw SigningError(.invalidArgument, "This key answers a challenge: give the one that you are shown.")
            }
            return try await answer(challenge, ocra, did, key.label)
        }
    }

    private func answer(
        _ challenge: String, _ ocra: OCRA, _ did: SigningID, _ label: String
    ) async throws -> SigningOneTimeCode {
        var input = OCRA.Input(challenges: [challenge])
        if ocra.suite.period != nil { input.time = clock.now }
        do {
            // A challenge that does not fit takes no counter value.
            if ocra.suite.usesCounter {
                input.counter = 0
                _ = try ocra.code(input)
                input.counter = UInt64(try await records.takeCounter(did, label))
            }
            return SigningOneTimeCode(label: label, code: Secret(try ocra.code(input)), expiresAt: nil)
        } catch let error as OTPError {
            throw SigningError(.invalidArgument, error.detail)
        }
    }

    private static func generator(_ key: OneTimeKeyRecord) throws(SigningError) -> OneTimeKeyRecord.Generator {
        do {
            return try key.generator()
        } catch {
            throw SigningError(.secureData, "A key for one-time codes cannot be read. \(error.detail)")
        }
    }
}
