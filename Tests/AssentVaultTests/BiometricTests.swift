import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

/// A fingerprint reader whose fingers a test enrolls.
private final class FakeReader: BiometricProvider {
    struct State {
        var fingers: Set<String> = ["thumb"]
        var confirmations = 0
        var answer: KeyProviderError?
        /// Enrolled while the question stands.
        var intruder: String?
    }
    let state = Locked(State())

    func enroll(_ finger: String) { state.withLock { _ = $0.fingers.insert(finger) } }
    func remove(_ finger: String) { state.withLock { _ = $0.fingers.remove(finger) } }

    func enrollment() async throws -> [UInt8]? {
        let fingers = state.withLock { $0.fingers }
        return fingers.isEmpty ? nil : Array(fingers.sorted().joined(separator: ",").utf8)
    }

    func confirm(_ reason: String) async throws {
        let answer = state.withLock { state in
            state.confirmations += 1
            if let intruder = state.intruder { state.fingers.insert(intruder) }
            return state.answer
        }
        if let answer { throw answer }
    }
}

@Suite("Keys that a finger or a face guards")
struct BiometricTests {
    private let reader = FakeReader()
    private let disk = SimulatedDisk()

    private var base: SoftwareKeyProvider { SoftwareKeyProvider(name: "keys") { [disk] _ in disk } }
    private var keys: BiometricKeyProvider { BiometricKeyProvider(base, biometrics: reader, reason: "Pay 200 EUR") }

    private func code(_ body: () async throws -> Void) async -> KeyProviderError.Code? {
        do { try await body() } catch let error as KeyProviderError { return error.code } catch {}
        return nil
    }

    @Test("keep the contract of key providers", arguments: KeyProviderContract.rules)
    func contract(_ rule: KeyProviderContract.Rule) async throws {
        let (disk, reader) = (SimulatedDisk(), FakeReader())
        try await rule.check {
            BiometricKeyProvider(
                SoftwareKeyProvider(name: "keys") { _ in disk }, biometrics: reader, reason: "a test")
        }
    }

    @Test("ask at each use, and not to be made or found")
    func asking() async throws {
        let made = try await keys.makeSigningKey(named: "key", algorithm: .es256)
        let agreement = try await keys.makeAgreementKey(named: "key")
        let found = try #require(try await keys.signingKey(named: "key"))
        #expect(found.publicKeyInfo == made.publicKeyInfo)
        #expect(reader.state.withLock { $0.confirmations } == 0)
        _ = try await found.signature(for: [1])
        _ = try await agreement.sharedSecret(with: agreement.publicPoint)
        #expect(reader.state.withLock { $0.confirmations } == 2)
        #expect(try await keys.keyNames() == ["key"])
        for refusal in [KeyProviderError.Code.userAbsent, .lockedOut] {
            reader.state.withLock { $0.answer = KeyProviderError(refusal, "The user did not agree, or could not.") }
            #expect(await code { _ = try await found.signature(for: [1]) } == refusal)
            #expect(await code { _ = try await agreement.sharedSecret(with: agreement.publicPoint) } == refusal)
        }
    }

    @Test("are lost when another finger is enrolled, for good, and others with them when they are used")
    func newFinger() async throws {
        let handle = try await keys.makeSigningKey(named: "old", algorithm: .es256)
        _ = try await keys.makeAgreementKey(named: "old")
        _ = try await keys.makeAgreementKey(named: "other")
        reader.enroll("little finger")
        #expect(await code { _ = try await handle.signature(for: [1]) } == .keyLost)
        #expect(reader.state.withLock { $0.confirmations } == 0)
        #expect(try await base.signingKey(named: "old") == nil)
        #expect(try await base.agreementKey(named: "old") == nil)
        #expect(await code { _ = try await keys.agreementKey(named: "other") } == .keyLost)
        reader.remove("little finger")
        #expect(try await keys.agreementKey(named: "other") == nil)
        #expect(try await base.keyNames() == [])
        let new = try await keys.makeSigningKey(named: "old", algorithm: .es256)
        _ = try await new.signature(for: [1])
    }

    @Test("are lost when a finger is removed, and unusable while none is enrolled")
    func removedFinger() async throws {
        reader.enroll("index finger")
        let key = try await keys.makeSigningKey(named: "key", algorithm: .es256)
        reader.remove("index finger")
        reader.remove("thumb")
        #expect(await code { _ = try await key.signature(for: [1]) } == .userAbsent)
        #expect(await !keys.isAvailable)
        #expect(await code { _ = try await keys.makeSigningKey(named: "new", algorithm: .es256) } == .userAbsent)
        reader.enroll("thumb")
        #expect(await keys.isAvailable)
        #expect(await code { _ = try await key.signature(for: [1]) } == .keyLost)
    }

    @Test("are lost even to somebody who enrolls while the question stands")
    func enrolledMeanwhile() async throws {
        let key = try await keys.makeSigningKey(named: "key", algorithm: .es256)
        reader.state.withLock { $0.intruder = "toe" }
        #expect(await code { _ = try await key.signature(for: [1]) } == .keyLost)
    }

    @Test("do not come back under their name without anybody noticing")
    func namesake() async throws {
        _ = try await keys.makeAgreementKey(named: "key")
        reader.enroll("toe")
        #expect(await code { _ = try await keys.makeSigningKey(named: "key", algorithm: .es256) } == .keyLost)
        _ = try await keys.makeSigningKey(named: "key", algorithm: .es256)
        #expect(try await keys.agreementKey(named: "key") == nil)
    }

    @Test("cannot be made without a mark, nor be taken for one")
    func marks() async throws {
        _ = try await base.makeSigningKey(named: "foreign", algorithm: .es256)
        #expect(await code { _ = try await keys.signingKey(named: "foreign") } == .keyLost)
        for name in ["enrolled.", "enrolled.00"] {
            #expect(await code { _ = try await keys.makeSigningKey(named: name, algorithm: .es256) } == .invalidInput)
            #expect(await code { try await keys.removeKey(named: name) } == .invalidInput)
        }
    }
}
