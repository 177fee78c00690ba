import AssentCore
import AssentVault
import Foundation

/// The configured store, opened when it is first needed. A failure to open is tried again at the next use.
actor VaultOpener: SecretStore {
    private let vault: Assent.Vault
    private let clock: any WallClock
    private let random: any RandomSource
    private var opening: Task<any SecretStore, any Error>?

    init(_ vault: Assent.Vault, clock: any WallClock, random: any RandomSource) {
        self.vault = vault
        self.clock = clock
        self.random = random
    }

    func value(_ name: String) async throws -> StoredSecret? { try await store().value(name) }

    func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
        try await store().update(name, to: value, expected: expected)
    }

    func names() async throws -> [String] { try await store().names() }

    func removeAll() async throws { try await store().removeAll() }

    func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        try await store().lease(name, deadline: deadline)
    }

    private func store() async throws -> any SecretStore {
        if let opening { return try await opening.value }
        let task = Task { try await open() }
        opening = task
        do {
            return try await task.value
        } catch {
            if opening == task { opening = nil }
            throw error
        }
    }

    private func open() async throws -> any SecretStore {
        switch vault {
        case .memory: return MemorySecretStore(clock: clock)
        case .store(let store): return store
        case .file(let directory, let keys, let store):
            return try await FileVault.open(
                directory, store: store, keys: keys, clock: clock, random: random)
        }
    }
}
