#if Keyring && os(Linux)
import AssentCore
import AssentPeers
import CKeyutils
import Foundation
import Testing

@testable import AssentPlatform

/// A store of its own in the real kernel, that is gone after the test.
final class TestKeyring: Sendable {
    let name = "test \(SystemRandom().uuid())"
    let locks: TemporaryDirectory
    let anchor: KeyringAnchor

    var description: String { "assent:" + name }

    init(_ anchor: KeyringAnchor = .user) throws {
        self.anchor = anchor
        locks = try TemporaryDirectory()
    }

    deinit {
        try? inStore { store, ring in store.unlinkQuietly(from: ring) }
    }

    func open(timeToLive: TimeInterval? = nil, clock: any WallClock = SystemClock()) throws -> KeyringSecretStore {
        try KeyringSecretStore(
            store: name, anchor: anchor, timeToLive: timeToLive, lockDirectory: locks.url, lockTimeout: 300,
            clock: clock)
    }

    /// Starts another process that works on the store, and ends it after `body`.
    func withAgent<Result>(
        _ mode: String, _ number: Int = -1, _ body: (ChildProcess) async throws -> Result
    ) async throws -> Result {
        let agent = try ChildProcess(Self.agent, arguments(mode, number))
        defer { agent.stop() }
        return try await body(agent)
    }

    /// All that such a process says until it ends.
    func lines(_ mode: String, _ number: Int = -1) throws -> [String] {
        try Self.lines(Self.agent, arguments(mode, number))
    }

    /// The same, started by another program.
    func lines(_ mode: String, launchedBy launcher: String, _ argument: String) throws -> [String] {
        try Self.lines(launcher, [argument, Self.agent] + arguments(mode))
    }

    private func arguments(_ mode: String, _ number: Int = -1) -> [String] {
        [mode, name, locks.url.path(percentEncoded: false), "\(number)"]
    }

    private static func lines(_ program: String, _ arguments: [String]) throws -> [String] {
        let agent = try ChildProcess(program, arguments)
        defer { agent.stop() }
        return Array(sequence(state: ()) { _ in agent.line() })
    }

    private static let agent = BuiltProgram.beside("KeyringAgent").path(percentEncoded: false)

    /// Does with the store's keyring what other programs of the user can do.
    func inStore<Result>(_ body: (_ store: KernelKey, _ ring: KernelKey) throws -> Result) throws -> Result? {
        let ring = anchor == .user ? KernelKey.user : try .persistent(into: .thread)
        defer { if anchor == .persistent { ring.unlinkQuietly(from: .thread) } }
        guard let store = try ring.find(.keyring, description, into: .thread) else { return nil }
        defer { store.unlinkQuietly(from: .thread) }
        return try body(store, ring)
    }

    /// The same with the keyring of one secret.
    func inRecord(_ name: String, _ body: (_ record: KernelKey) throws -> Void) throws {
        try inStore { store, _ in
            let record = try #require(
                try store.find(.keyring, KeyringRecord.description(of: name), into: .thread))
            defer { record.unlinkQuietly(from: .thread) }
            try body(record)
        }
    }

    /// The same with one of its keys.
    func inKey(_ description: String, of name: String, _ body: (_ key: KernelKey) throws -> Void) throws {
        try inRecord(name) { record in
            let key = try #require(try record.find(.user, description, into: .thread))
            defer { key.unlinkQuietly(from: .thread) }
            try body(key)
        }
    }
}

extension KernelKey {
    func revoke() { #expect(keyctl_revoke(serial) == 0) }
}

/// The code of the error of a secret store that `body` throws; anything else fails the test.
func storeCode(
    _ location: SourceLocation = #_sourceLocation, of body: () async throws -> Void
) async -> SecretStoreError.Code? {
    do {
        try await body()
        return nil
    } catch let error as SecretStoreError {
        #expect(error.detail.count > 40, "\(error)", sourceLocation: location)
        return error.code
    } catch {
        Issue.record("\(error)", sourceLocation: location)
        return nil
    }
}
#endif
