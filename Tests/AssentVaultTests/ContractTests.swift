import AssentCore
import AssentPeers
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

@Suite("The contract of secret stores")
struct ContractTests {
    @Test("The memory store keeps it", arguments: SecretStoreContract.rules)
    func memory(_ rule: SecretStoreContract.Rule) async throws {
        try await rule.check(MemorySecretStore())
    }

    @Test("The vault keeps it on a real disk", arguments: SecretStoreContract.rules)
    func vault(_ rule: SecretStoreContract.Rule) async throws {
        let directory = try TemporaryDirectory()
        try await rule.check(directory.open())
    }

    @Test("Two vaults over one directory keep it together", arguments: SecretStoreContract.rules)
    func twoVaults(_ rule: SecretStoreContract.Rule) async throws {
        let directory = try TemporaryDirectory()
        try await rule.check(Alternating(stores: [directory.open(), directory.open()]))
    }

    @Test("The suite finds a store that forgets versions")
    func suiteFindsFault() async throws {
        var broken: [String] = []
        for rule in SecretStoreContract.rules {
            do { try await rule.check(Forgetful()) } catch is SecretStoreContract.Violation {
                broken.append(rule.description)
            }
        }
        #expect(broken.contains("A name made again never has a version that it had before"))
        #expect(broken.contains("A lease excludes others until it is released"))
    }
}

/// Sends each call to the next of several stores.
private struct Alternating: SecretStore {
    let stores: [any SecretStore]
    private let calls = Locked(0)

    init(stores: [any SecretStore]) { self.stores = stores }

    private var next: any SecretStore {
        stores[
            calls.withLock { calls in
                calls += 1
                return calls % stores.count
            }]
    }

    func value(_ name: String) async throws -> StoredSecret? { try await next.value(name) }
    func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
        try await next.update(name, to: value, expected: expected)
    }
    func names() async throws -> [String] { try await next.names() }
    func removeAll() async throws { try await next.removeAll() }
    func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        try await next.lease(name, deadline: deadline)
    }
}

/// A store with two faults: versions start again after a removal, and leases exclude nobody.
private actor Forgetful: SecretStore {
    struct NoLease: SecretLease { func release() async {} }
    private var secrets: [String: StoredSecret] = [:]

    func value(_ name: String) -> StoredSecret? { secrets[name] }
    func update(_ name: String, to value: Secret?, expected: ExpectedVersion) throws -> UInt64 {
        try expected.check(secrets[name]?.version)
        let version = (secrets[name]?.version ?? 0) + 1
        secrets[name] = value.map { StoredSecret(value: $0, version: version) }
        return value == nil ? 0 : version
    }
    func names() -> [String] { secrets.keys.sorted() }
    func removeAll() { secrets = [:] }
    func lease(_ name: String, deadline: Date) -> any SecretLease { NoLease() }
}
