package import AssentCore
import Foundation

/// What the SDK keeps in a store, changed behind its back.
package struct StoredRecords: Sendable {
    private let store: any SecretStore

    package init(_ store: any SecretStore) { self.store = store }

    /// The stored access token; `nil` when there are no tokens.
    package func accessToken() async throws -> String? { try await record("tokens.")?["access_token"]?.string }

    package func refreshToken() async throws -> Secret? {
        try await record("tokens.")?["refresh_token"]?.string.map { Secret($0) }
    }

    /// Whether there is a session.
    package func hasSession() async throws -> Bool { try await name("session.") != nil }

    package func changeTokens(_ change: (inout JSONObject) -> Void) async throws {
        try await self.change("tokens.", change)
    }

    /// The access token is over.
    package func expire() async throws {
        try await changeTokens { $0["expires_at"] = .integer(Int64(Date().timeIntervalSince1970) - 5) }
    }

    package func remove(_ prefix: String) async throws {
        guard let name = try await name(prefix) else { return }
        try await store.update(name, to: nil, expected: .any)
    }

    /// Puts another session's token in the place of the stored one.
    package func setSession(_ token: Secret) async throws {
        try await change("session.") { $0["token"] = .string(token.reveal()) }
    }

    private func name(_ prefix: String) async throws -> String? {
        try await store.names().first { $0.hasPrefix(prefix) }
    }

    private func record(_ prefix: String) async throws -> JSONObject? {
        guard let name = try await name(prefix), let stored = try await store.value(name) else { return nil }
        return try JSONValue.parse(stored.value.revealBytes()).object
    }

    private func change(_ prefix: String, _ change: (inout JSONObject) -> Void) async throws {
        guard let name = try await name(prefix), var record = try await record(prefix) else { return }
        change(&record)
        try await store.update(
            name, to: Secret(bytes: JSONValue.object(record).serializedBytes()), expected: .any)
    }
}
