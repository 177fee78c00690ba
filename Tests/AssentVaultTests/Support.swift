import AssentCore
import AssentPeers
import Foundation
import TestSupport
import Testing

@testable import AssentVault

/// How many seconds an update waits where waiting is not what is tested: a disk under load is slow.
let unhurried: Double = 3600

extension TemporaryDirectory {
    var vault: URL { url.appending(path: "vault") }
    var keyFile: URL { url.appending(path: "vault.key") }

    /// Keys in plain sight, the fastest that there are.
    var keys: VaultKeys { .software(SoftwareKeyProvider(unprotectedFile: keyFile, lockTimeout: unhurried)) }

    func open() async throws -> FileVault {
        try await FileVault.open(vault, keys: keys, lockTimeout: unhurried)
    }

    func mode(_ url: URL) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int)
    }

    /// All files below, by path.
    func files() throws -> [URL] {
        let paths = try #require(FileManager.default.subpaths(atPath: url.path))
        return paths.map { url.appending(path: $0) }.filter { (try? Data(contentsOf: $0)) != nil }
    }
}

/// A cost at the lower limit.
let cheap = ScryptCost(logRounds: 14, blockSize: 8, parallelism: 1) ?? .standard

/// A key provider whose device a test holds in its hand: it can be unplugged, answer with garbage, and lose keys.
final class FakeDevice: KeyProvider {
    struct State {
        var signing: [String: Secret] = [:]
        var agreement: [String: Secret] = [:]
        var counters: [String: UInt64] = [:]
        var highest: UInt64 = 40
        var failure: KeyProviderError?
        var garbage = false
        var incrementsFail = false
        var calls: [String] = []
    }

    let kind: String
    let protection: KeyProtection
    let hasCounters: Bool
    let state = Locked(State())

    init(kind: String = "fake", protection: KeyProtection = .hardware, counters: Bool = false) {
        self.kind = kind
        self.protection = protection
        hasCounters = counters
    }

    var availability: KeyAvailability {
        state.withLock { $0.failure }.map { KeyAvailability($0) } ?? .available
    }

    /// What every call does from now on.
    func fail(_ code: KeyProviderError.Code?) {
        state.withLock { $0.failure = code.map { KeyProviderError($0, "The device does not work, for a test.") } }
    }

    /// Whether counting fails while everything else works.
    func failIncrements(_ fail: Bool) { state.withLock { $0.incrementsFail = fail } }

    func calls() -> [String] { state.withLock { $0.calls } }

    fileprivate func call(_ name: String) throws {
        // As of a token or a TPM, whose callers take turns.
        try Task.checkCancellation()
        let failure = state.withLock { state in
            state.calls.append(name)
            return state.failure
        }
        if let failure { throw failure }
    }

    func keyNames() async throws -> [String] {
        try call("keyNames")
        return state.withLock { Set($0.signing.keys).union($0.agreement.keys).sorted() }
    }

    func signingKey(named name: String) async throws -> (any SigningKey)? {
        try call("signingKey")
        return try state.withLock { $0.signing[name] }.map { try Signer(device: self, key: SoftwareSigner($0)) }
    }

    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        try call("makeSigningKey")
        let key = Secret(bytes: SystemRandom().bytes(31) + [1])
        state.withLock { $0.signing[name] = key }
        return try Signer(device: self, key: SoftwareSigner(key))
    }

    func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? {
        try call("agreementKey")
        return try state.withLock { $0.agreement[name] }.map { try Agreement(device: self, key: SoftwareAgreement($0)) }
    }

    func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey {
        try call("makeAgreementKey")
        let key = Secret(bytes: SystemRandom().bytes(31) + [1])
        state.withLock { $0.agreement[name] = key }
        return try Agreement(device: self, key: SoftwareAgreement(key))
    }

    func removeKey(named name: String) async throws {
        try call("removeKey")
        state.withLock { state in
            state.signing[name] = nil
            state.agreement[name] = nil
            state.counters[name] = nil
        }
    }

    func rollbackCounter(named name: String) async throws -> (any RollbackCounter)? {
        try call("rollbackCounter")
        return state.withLock { $0.counters[name] == nil ? nil : Counter(device: self, name: name) }
    }

    func makeRollbackCounter(named name: String) async throws -> (any RollbackCounter)? {
        guard hasCounters else { return nil }
        try call("makeRollbackCounter")
        state.withLock { state in
            state.highest += 1
            state.counters[name] = state.highest
        }
        return Counter(device: self, name: name)
    }

    private struct Signer: SigningKey {
        let device: FakeDevice
        let key: SoftwareSigner
        var algorithm: SignatureAlgorithm { key.algorithm }
        var publicKeyInfo: [UInt8] { key.publicKeyInfo }
        func signature(for message: [UInt8]) async throws -> [UInt8] {
            try device.call("sign")
            if device.state.withLock({ $0.garbage }) { return [UInt8](repeating: 7, count: 64) }
            return try await key.signature(for: message)
        }
    }

    private struct Agreement: KeyAgreementKey {
        let device: FakeDevice
        let key: SoftwareAgreement
        var publicPoint: [UInt8] { key.publicPoint }
        func sharedSecret(with peer: [UInt8]) async throws -> Secret {
            try device.call("agree")
            if device.state.withLock({ $0.garbage }) { return Secret(bytes: [UInt8](repeating: 7, count: 32)) }
            return try await key.sharedSecret(with: peer)
        }
    }

    private struct Counter: RollbackCounter {
        let device: FakeDevice
        let name: String
        func value() async throws -> UInt64 {
            try device.call("counter")
            return device.state.withLock { $0.counters[name] ?? 0 }
        }
        func increment() async throws -> UInt64 {
            try device.call("increment")
            if device.state.withLock({ $0.incrementsFail }) {
                throw KeyProviderError(.failed, "The counter does not count, for a test.")
            }
            return device.state.withLock { state in
                let next = (state.counters[name] ?? 0) + 1
                state.counters[name] = next
                state.highest = max(state.highest, next)
                return next
            }
        }
    }
}

/// Software keys that are the same wherever they are asked for: for tests that copy disks.
struct MemoryKey: KeyProvider {
    var seed: UInt8 = 1
    var protection = KeyProtection.software
    var kind = "memory"

    var availability: KeyAvailability { .available }
    private var scalar: Secret { Secret(bytes: [UInt8](repeating: seed, count: 32)) }

    func keyNames() async throws -> [String] { [] }
    func signingKey(named name: String) async throws -> (any SigningKey)? { try SoftwareSigner(scalar) }
    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        try SoftwareSigner(scalar)
    }
    func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? { try SoftwareAgreement(scalar) }
    func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey { try SoftwareAgreement(scalar) }
    func removeKey(named name: String) async throws {}
}

func vault(
    on disk: any VaultDirectory, keys: any KeyProvider = MemoryKey(), store: String = "default",
    createIfMissing: Bool = true
) async throws -> FileVault {
    try await vault(
        on: disk, guardedBy: keys.protection == .hardware ? .requireHardware(keys) : .software(keys), store: store,
        createIfMissing: createIfMissing)
}

func vault(
    on disk: any VaultDirectory, guardedBy keys: VaultKeys, store: String = "default", createIfMissing: Bool = true
) async throws -> FileVault {
    let vault = FileVault(
        files: disk, store: store, keys: keys,
        surroundings: VaultSurroundings(
            directory: URL(filePath: "/nonexistent/vault"), clock: SystemClock(), random: SystemRandom()),
        lockTimeout: unhurried)
    try await vault.start(createIfMissing: createIfMissing)
    return vault
}

/// The code of the store error that `body` throws; anything else fails the test.
func code(
    _ location: SourceLocation = #_sourceLocation, of body: () async throws -> Void
) async -> SecretStoreError.Code? {
    do {
        try await body()
        return nil
    } catch let error as SecretStoreError {
        #expect(error.detail.count > 20, "\(error)", sourceLocation: location)
        return error.code
    } catch {
        Issue.record("\(error)", sourceLocation: location)
        return nil
    }
}

/// Lets other tasks run until `condition` holds. A million turns can be over within a second, in which another thread
/// that waits for the disk has not come back.
func until(_ condition: () -> Bool) async throws {
    try await Patience.wait(until: "what the test waits for has happened") { condition() }
}
