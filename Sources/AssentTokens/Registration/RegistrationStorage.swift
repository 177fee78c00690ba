import AssentCore
import Foundation

/// What is known of the registration, in the app's store.
enum RegistrationRecord: Sendable, Equatable {
    /// A key's name, noted before the key is made. `isSent` says that a request with this key has gone out whose answer
    /// nobody knows: the server may have a client with that key, which nobody can manage.
    case begun(key: String, isSent: Bool)
    /// The server has answered.
    case done(RegisteredInstance)
}

/// The registration in the app's store. Each app of each issuer has a name of its own.
struct RegistrationStorage: Sendable {
    let store: any SecretStore

    /// The name of the record, and of the lease that makes a registration the only one.
    let name: String

    private let owner: String

    init(_ storage: TokenStorage) {
        store = storage.store
        owner = storage.owner
        name = "registration.\(owner)"
    }

    func load() async throws -> RegistrationRecord? {
        try await storeErrorsAsTokenErrors {
            guard let stored = try await store.value(name) else { return nil }
            guard let json = try? JSONValue.parse(stored.value.revealBytes()), json["v"]?.integer == 1 else {
                throw Self.unreadable
            }
            if let instance = RegisteredInstance(stored: json) { return .done(instance) }
            guard let key = json["key"]?.string, let isSent = json["sent"]?.bool else { throw Self.unreadable }
            return .begun(key: key, isSent: isSent)
        }
    }

    func save(_ record: RegistrationRecord?) async throws {
        var json: JSONObject?
        switch record {
        case nil: break
        case .begun(let key, let isSent): json = ["key": .string(key), "sent": .bool(isSent)]
        case .done(let instance): json = instance.json
        }
        json?["v"] = 1
        let value = json.map { Secret(bytes: JSONValue.object($0).serializedBytes()) }
        _ = try await storeErrorsAsTokenErrors { try await store.update(name, to: value, expected: .any) }
    }

    /// A name for a key. No other store has the same, so that two that share a key provider never remove each other's
    /// key.
    func newKeyName(random: any RandomSource) -> String { "instance.\(owner).\(random.token(byteCount: 9))" }

    /// Runs `body` while nobody else, in any process, registers this installation or ends its registration.
    func exclusively<Result>(until deadline: Date, _ body: () async throws -> Result) async throws -> Result {
        try await storeErrorsAsTokenErrors {
            try await store.withExclusiveAccess(name, deadline: deadline, body)
        }
    }

    private static let unreadable = TokenError(
        .storageFailed, "The stored registration cannot be read. A newer version of this library may have written it.",
        suggestion: "Use the newest version.")
}
