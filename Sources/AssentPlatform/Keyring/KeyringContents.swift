#if Keyring && os(Linux)
import AssentCore
import AssentVault
import Foundation
import Glibc

/// What a ``KeyringSecretStore`` does with the kernel: a keyring `assent:<store>` with a ``KeyringRecord`` for each
/// secret and the key `versions`.
///
/// Calls stay on the thread that they began on, since the kernel decides possession by thread, and none waits. Changes
/// need the lock.
struct KeyringContents: Sendable {
    let store: String
    let anchor: KeyringAnchor
    let timeToLive: TimeInterval?
    let clock: any WallClock

    private var description: String { "assent:" + store }

    private enum Found {
        case nothing
        case version(UInt64, KernelKey)
        /// The key is `nil` when the kernel does not say which it is.
        case unreadable(SecretStoreError, KernelKey?)
    }

    /// Looks whether the kernel lets us.
    func probe() throws {
        try reading { _ in }
    }

    func value(_ name: String) throws -> StoredSecret? {
        try reading { store in
            guard let record = try store.flatMap({ try Self.record(name, in: $0) }) else { return nil }
            defer { record.key.unlinkQuietly(from: .thread) }
            return try record.value(now: clock.now)
        }
    }

    /// The names; `nil` when a record was replaced while they were read.
    func names() throws -> [String]? {
        try reading { store in
            guard let store else { return [] }
            var names: [String] = []
            for key in try store.members() {
                do {
                    let found = try key.describe()
                    guard found.kind == KernelKey.Kind.keyring.rawValue else { continue }
                    if let name = KeyringRecord.name(in: found.text) { names.append(name) }
                } catch let failure as KeyringFailure {
                    switch failure.code {
                    case ENOKEY, EACCES: return nil
                    // Whose they were, the kernel does not say any more.
                    case EKEYEXPIRED, EKEYREVOKED: continue
                    default: throw failure
                    }
                }
            }
            return names.sorted()
        }
    }

    func update(_ name: String, to value: Secret?, expected: ExpectedVersion) throws -> UInt64 {
        try anchored { ring in
            try opened(in: ring) { existing in
                if let existing { return try change(name, value, expected, in: existing) }
                try expected.check(nil)
                guard value != nil else { return 0 }
                let new = try make(KeyringVersions())
                defer { new.unlinkQuietly(from: .thread) }
                let version = try change(name, value, expected, in: new)
                // A new store appears with its first secret, in one step.
                try new.link(into: ring)
                return version
            }
        }
    }

    /// Puts an empty store in this one's place, in one step, whatever state this one is in.
    func removeAll() throws {
        try anchored { ring in
            var highest: UInt64 = 0
            do {
                let isThere = try opened(in: ring) { store in
                    if let store { highest = try Self.versions(in: store).versions.highest }
                    return store != nil
                }
                guard isThere else { return }
            } catch {
                guard Self.isDamage(Self.storeError(error)) else { throw error }
            }
            let new = try make(KeyringVersions(floor: highest, highest: highest))
            defer { new.unlinkQuietly(from: .thread) }
            try new.link(into: ring)
        }
    }
}

// MARK: - Changes

extension KeyringContents {
    private func change(
        _ name: String, _ value: Secret?, _ expected: ExpectedVersion, in store: KernelKey
    ) throws -> UInt64 {
        let (versionsKey, versions) = try Self.versions(in: store)
        let found = try Self.look(for: name, in: store)
        switch found {
        case .nothing: try expected.check(nil)
        case .version(let version, _): try expected.check(version)
        case .unreadable(let error, _): if expected != .any { throw error }
        }
        if let value {
            return try set(name, value, found, versions, versionsKey, in: store)
        }
        try remove(name, found, versions, versionsKey, in: store)
        return 0
    }

    private func set(
        _ name: String, _ value: Secret, _ found: Found, _ before: KeyringVersions, _ versionsKey: KernelKey,
        in store: KernelKey
    ) throws -> UInt64 {
        let former: UInt64
        switch found {
        case .nothing:
            guard try store.members().count <= KeyringSecretStore.entryLimit else { throw Self.tooMany }
            former = before.floor
        case .version(let version, _): former = version
        case .unreadable: former = before.highest
        }
        guard former < KeyringVersions.limit else { throw KeyringFailure.damaged("A version is too high.") }
        let record = try record(name, value, version: former + 1)
        defer { record.key.unlinkQuietly(from: .thread) }
        // The version comes first: whatever happens then, it is not given out twice.
        var versions = before
        versions.highest = max(versions.highest, former + 1)
        if versions != before { try versionsKey.update(versions.encoded) }
        try record.key.link(into: store)
        return former + 1
    }

    private func remove(
        _ name: String, _ found: Found, _ before: KeyringVersions, _ versionsKey: KernelKey, in store: KernelKey
    ) throws {
        var versions = before
        let key: KernelKey?
        switch found {
        case .nothing: return
        case .version(let version, let found):
            versions.floor = max(versions.floor, version)
            key = found
        case .unreadable(_, let found):
            versions.floor = versions.highest
            key = found
        }
        versions.highest = max(versions.highest, versions.floor)
        guard versions.highest <= KeyringVersions.limit else { throw KeyringFailure.damaged("A version is too high.") }
        if versions != before { try versionsKey.update(versions.encoded) }
        if let key { return try key.unlink(from: store) }
        // What the kernel does not name is displaced.
        let empty = try KernelKey.add(.keyring, KeyringRecord.description(of: name), to: .thread)
        defer { empty.unlinkQuietly(from: .thread) }
        try empty.link(into: store)
        try empty.unlink(from: store)
    }

    private func record(_ name: String, _ value: Secret, version: UInt64) throws -> KeyringRecord {
        let expiry = timeToLive.map { UInt64(max(0, clock.now.timeIntervalSince1970 + $0)) } ?? 0
        return try KeyringRecord.make(
            name, KeyringRecord.Head(version: version, count: UInt32(clamping: value.count), expiry: expiry), value,
            timeToLive: timeToLive.map { UInt32($0.rounded(.up)) })
    }

    /// An empty store in the thread's keyring.
    private func make(_ versions: KeyringVersions) throws -> KernelKey {
        let store = try KernelKey.add(.keyring, description, to: .thread)
        do {
            _ = try versions.encoded.withUnsafeBytes { bytes in
                try KernelKey.add(.user, KeyringVersions.description, bytes, to: store)
            }
        } catch {
            store.unlinkQuietly(from: .thread)
            throw error
        }
        return store
    }
}

// MARK: - Finding

extension KeyringContents {
    /// Calls `body` with the keyring that holds the store.
    private func anchored<Result>(_ body: (KernelKey) throws -> Result) throws -> Result {
        do {
            switch anchor {
            case .user: return try body(.user)
            case .persistent:
                let ring = try KernelKey.persistent(into: .thread)
                defer { ring.unlinkQuietly(from: .thread) }
                return try body(ring)
            }
        } catch {
            throw Self.storeError(error)
        }
    }

    /// Calls `body` with the store's keyring; `nil` when there is none.
    private func opened<Result>(in ring: KernelKey, _ body: (KernelKey?) throws -> Result) throws -> Result {
        guard let store = try ring.find(.keyring, description, into: .thread) else { return try body(nil) }
        defer { store.unlinkQuietly(from: .thread) }
        let found = try store.describe()
        guard found.owner == geteuid(), found.permissions & ~KernelKey.possessorOnly == 0 else {
            throw SecretStoreError(
                .notPermitted,
                "Others can use this keyring, or own it: another program made or changed it. Find out which one, and "
                    + "remove the keyring: keyctl unlink.")
        }
        return try body(store)
    }

    private func reading<Result>(_ body: (KernelKey?) throws -> Result) throws -> Result {
        try anchored { try opened(in: $0, body) }
    }

    private static func record(_ name: String, in store: KernelKey) throws -> KeyringRecord? {
        guard let key = try store.find(.keyring, KeyringRecord.description(of: name), into: .thread) else { return nil }
        return KeyringRecord(key: key, name: name)
    }

    private static func look(for name: String, in store: KernelKey) throws -> Found {
        var key: KernelKey?
        do {
            guard let record = try record(name, in: store) else { return .nothing }
            defer { record.key.unlinkQuietly(from: .thread) }
            key = record.key
            return .version(try record.head().version, record.key)
        } catch {
            guard let error = storeError(error) as? SecretStoreError, isDamage(error) else { throw error }
            return .unreadable(error, key)
        }
    }

    private static func versions(in store: KernelKey) throws -> (key: KernelKey, versions: KeyringVersions) {
        guard let key = try store.find(.user, KeyringVersions.description, into: .thread) else {
            throw KeyringFailure.damaged("The store's versions are missing.")
        }
        // Possessed through the store from here on.
        defer { key.unlinkQuietly(from: .thread) }
        guard let bytes = try key.payload(KeyringVersions.length), let versions = KeyringVersions(decoding: bytes)
        else {
            throw KeyringFailure.damaged("The store's versions make no sense.")
        }
        return (key, versions)
    }

    private static func storeError(_ error: any Error) -> any Error { (error as? KeyringFailure)?.error ?? error }

    /// Whether something that is there cannot be read, and may be replaced by who wants that.
    private static func isDamage(_ error: any Error) -> Bool {
        guard let code = (error as? SecretStoreError)?.code else { return false }
        return [.tampered, .expired, .revoked].contains(code)
    }

    private static let tooMany = SecretStoreError(
        .invalidInput,
        "A store in the keyring holds at most \(KeyringSecretStore.entryLimit) secrets. Remove some that are not needed."
    )
}
#endif
