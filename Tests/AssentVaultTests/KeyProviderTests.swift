import AssentCore
import AssentPeers
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

@Suite("The contract of key providers")
struct KeyProviderTests {
    @Test("Software keys under a passphrase keep it", arguments: KeyProviderContract.rules)
    func passphrase(_ rule: KeyProviderContract.Rule) async throws {
        let directory = try TemporaryDirectory()
        try await rule.check {
            SoftwareKeyProvider(
                file: directory.keyFile, passphrase: KnownSecret(Secret("correct horse")), cost: cheap,
                lockTimeout: unhurried)
        }
    }

    @Test("Software keys in an unprotected file keep it", arguments: KeyProviderContract.rules)
    func unprotected(_ rule: KeyProviderContract.Rule) async throws {
        let directory = try TemporaryDirectory()
        try await rule.check { SoftwareKeyProvider(unprotectedFile: directory.keyFile, lockTimeout: unhurried) }
    }

    @Test("The suite finds a provider that forgets and one that signs something else")
    func suiteFindsFaults() async throws {
        var broken: [String] = []
        for rule in KeyProviderContract.rules {
            do {
                try await rule.check { Forgetful() }
            } catch is KeyProviderContract.Violation {
                broken.append(rule.description)
            } catch is KeyProviderError {}
        }
        #expect(broken.contains("A signing key is found again, by others too, and is still the same"))
        #expect(broken.contains("A signing key signs, and only what it was given"))
        #expect(broken.contains("A rollback counter only grows, for others too, or there is none at all"))
    }
}

/// A provider with three faults: nothing is kept, signatures are of nothing, and the counter stands still.
private struct Forgetful: KeyProvider {
    struct Empty: SigningKey {
        let key: any SigningKey
        var algorithm: SignatureAlgorithm { key.algorithm }
        var publicKeyInfo: [UInt8] { key.publicKeyInfo }
        func signature(for message: [UInt8]) async throws -> [UInt8] { try await key.signature(for: []) }
    }
    struct Still: RollbackCounter {
        func value() async throws -> UInt64 { 7 }
        func increment() async throws -> UInt64 { 7 }
    }

    var kind: String { "forgetful" }
    var protection: KeyProtection { .software }
    var availability: KeyAvailability { .available }

    func keyNames() async throws -> [String] { [] }
    func signingKey(named name: String) async throws -> (any SigningKey)? { nil }
    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        Empty(key: try SoftwareSigner(Secret(bytes: [UInt8](repeating: 1, count: 32))))
    }
    func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? { nil }
    func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey {
        try SoftwareAgreement(Secret(bytes: [UInt8](repeating: 1, count: 32)))
    }
    func removeKey(named name: String) async throws {}
    func makeRollbackCounter(named name: String) async throws -> (any RollbackCounter)? { Still() }
}
