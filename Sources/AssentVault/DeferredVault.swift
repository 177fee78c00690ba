package import AssentCore
package import Foundation

/// A file vault that is opened when it is first needed. When opening fails, the next use tries again.
package actor DeferredVault: SecretStore {
    private let open: @Sendable () async throws -> FileVault
    private var opening: Task<FileVault, any Error>?

    /// The vault in `directory`, which is made when it is missing; see ``FileVault``.
    package init(
        _ directory: URL, store: String, keys: VaultKeys, lockTimeout: TimeInterval = 10, clock: any WallClock,
        random: any RandomSource
    ) {
        open = {
            try await FileVault.open(
                directory, store: store, keys: keys, lockTimeout: lockTimeout, clock: clock, random: random)
        }
    }

    package func value(_ name: String) async throws -> StoredSecret? { try await vault().value(name) }

    package func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
        try await vault().update(name, to: value, expected: expected)
    }

    package func names() async throws -> [String] { try await vault().names() }

    package func removeAll() async throws { try await vault().removeAll() }

    package func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        try await vault().lease(name, deadline: deadline)
    }

    private func vault() async throws -> FileVault {
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
}
