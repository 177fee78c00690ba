import AssentCore
import AssentOTP
import AssentSigningProtocol
import Foundation

/// Keeps the keys for one-time codes of containers, and makes codes.
struct OneTimeCodes: Sendable {
    let parts: DeviceParts

    /// Keeps the keys that came with an enrolment or a renewal: exactly those that were offered, and none of them when
    /// one cannot be used.
    func keep(_ keys: [OneTimeKey], offered record: ContainerRecord) async throws {
        guard let offer = try record.offerContent() else { throw SigningError(.internal) }
        let did = try record.knownDid
        let offered = offer.keys.filter { $0.usage == .otp }
        guard offered.map(\.label) == keys.map(\.label), keys.allSatisfy({ $0.slot == nil }) else {
            throw SigningError(.offerRefused, "The keys for one-time codes are not those of the offer.")
        }
        let records = keys.map { key in
            OneTimeKeyRecord(
                did: did, label: key.label, uri: key.uri, counter: OneTimeKeyRecord.firstCounter(key.uri))
        }
        for record in records {
            do {
                _ = try record.generator()
            } catch {
                throw SigningError(.offerRefused, "A key for one-time codes cannot be used. \(error.detail)")
            }
            guard record.counter <= OneTimeKeyRecord.highestFirstCounter else {
                throw SigningError(.offerRefused, "A key for one-time codes begins with a counter that is too high.")
            }
        }
        for record in records { try await parts.records.keep(record) }
    }

    func keys(of id: SigningID) async throws -> [SigningOneTimeKey] {
        guard let did = try await parts.records.load(id).did else { return [] }
        return try await parts.records.oneTimeKeys(of: did).map { key in
            let kind: SigningOneTimeKey.Kind =
                switch try Self.generator(key) {
                case .time: .time
                case .counter: .counter
                case .challenge: .challenge
                }
            return SigningOneTimeKey(label: key.label, kind: kind)
        }
    }

    func code(_ id: SigningID, label: String?, challenge: String?) async throws -> SigningOneTimeCode {
        let record = try await parts.records.load(id)
        guard let did = record.did, record.deletion == nil, !record.ended else {
            throw SigningError(.credentialsLost)
        }
        let keys = try await parts.records.oneTimeKeys(of: did)
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
                label: key.label, code: Secret(totp.code(at: parts.clock.now)),
                expiresAt: totp.end(ofStepAt: parts.clock.now))
        case .counter(let hotp):
            let counter = try await parts.records.takeCounter(did, key.label)
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
        if ocra.suite.period != nil { input.time = parts.clock.now }
        do {
            // A challenge that does not fit takes no counter value.
            if ocra.suite.usesCounter {
                input.counter = 0
                _ = try ocra.code(input)
                input.counter = UInt64(try await parts.records.takeCounter(did, label))
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
