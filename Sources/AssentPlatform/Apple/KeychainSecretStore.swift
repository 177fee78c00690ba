#if canImport(Security)
public import AssentCore
import AssentVault
public import Foundation
import Security

/// Secrets as generic passwords in the keychain.
///
/// Items are readable after the first unlock, on this device only: they are neither synchronized nor restored to
/// another device. Sharing with other apps is an explicit `accessGroup`. Nothing but items of this service is ever
/// touched. The keychain itself encrypts; the file vault with ``SecureEnclaveKeyProvider`` also detects swapped and
/// rolled back items, which this does not. Leases exclude tasks of this process, not other processes: apps that share a
/// group use a vault.
public actor KeychainSecretStore: SecretStore {
    private struct Item {
        var version: UInt64
        /// `nil`: removed; the version is kept, so that a name made again has a new one.
        var value: Data?
    }

    private let service: String
    private let accessGroup: String?
    private let leases: MemorySecretStore

    /// Secrets of `service`, a name of the app's own such as `com.example.bank.secrets`.
    public init(service: String, accessGroup: String? = nil, clock: any WallClock = SystemClock()) {
        self.service = service
        self.accessGroup = accessGroup
        leases = MemorySecretStore(clock: clock)
    }

    /// The secret called `name`, or `nil` when there is none.
    public func value(_ name: String) throws -> StoredSecret? {
        guard let item = try item(name), let value = item.value else { return nil }
        return StoredSecret(value: Secret(bytes: value), version: item.version)
    }

    /// Sets or removes a secret; see ``AssentCore/SecretStore/update(_:to:expected:)``.
    @discardableResult
    public func update(_ name: String, to value: Secret?, expected: ExpectedVersion) throws -> UInt64 {
        for _ in 0..<16 {
            let old = try item(name)
            let live = old?.value == nil ? nil : old?.version
            let isExpected =
                switch expected {
                case .any: true
                case .absent: live == nil
                case .exactly(let version): version == live ?? 0
                }
            guard isExpected else { throw Self.mismatch }
            if value == nil, live == nil { return 0 }
            let version = value == nil ? old?.version ?? 0 : (old?.version ?? 0) + 1
            let new = Item(version: version, value: value.map { Data($0.revealBytes()) })
            if try old.map({ try replace(name, $0, by: new) }) ?? add(name, new) { return value == nil ? 0 : version }
            // Another process was faster.
            guard expected == .any else { throw Self.mismatch }
        }
        throw SecretStoreError(.busy, "Another process changes this secret all the time. Try again.")
    }

    /// All names, sorted.
    public func names() throws -> [String] {
        var query = query(nil)
        query[kSecReturnAttributes] = true
        query[kSecMatchLimit] = kSecMatchLimitAll
        var result: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess, let items = result as? [[CFString: Any]] else { throw Self.failure(status) }
        return items.compactMap { item in
            guard let mark = item[kSecAttrGeneric] as? Data, mark.last == 1 else { return nil }
            return item[kSecAttrAccount] as? String
        }.sorted()
    }

    /// Removes every secret of this service.
    public func removeAll() throws {
        for name in try names() { try update(name, to: nil, expected: .any) }
    }

    /// Waits until no task of this process holds `name`.
    public func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        try await leases.lease(name, deadline: deadline)
    }

    private func query(_ name: String?) -> [CFString: Any] {
        var query: [CFString: Any] = [
            kSecClass: kSecClassGenericPassword, kSecAttrService: service, kSecAttrSynchronizable: false,
            kSecUseDataProtectionKeychain: true,
        ]
        if let name { query[kSecAttrAccount] = name }
        if let accessGroup { query[kSecAttrAccessGroup] = accessGroup }
        return query
    }

    private func item(_ name: String) throws -> Item? {
        try check(name)
        var query = query(name)
        query[kSecReturnAttributes] = true
        query[kSecReturnData] = true
        var result: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return nil }
        guard status == errSecSuccess, let found = result as? [CFString: Any] else { throw Self.failure(status) }
        guard let mark = found[kSecAttrGeneric] as? Data, mark.count == 9, let value = found[kSecValueData] as? Data
        else {
            throw SecretStoreError(
                .tampered, "A keychain item is not what this library writes. Remove it and sign in again.")
        }
        let version = mark.dropLast().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Item(version: version, value: mark.last == 1 ? value : nil)
    }

    private func add(_ name: String, _ item: Item) throws -> Bool {
        let attributes = query(name).merging(Self.attributes(item)) { $1 }
            .merging([kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly]) { $1 }
        let status = SecItemAdd(attributes as CFDictionary, nil)
        if status == errSecDuplicateItem { return false }
        guard status == errSecSuccess else { throw Self.failure(status) }
        return true
    }

    /// Replaces the item if it still is what it was: the keychain compares and sets in one step.
    private func replace(_ name: String, _ old: Item, by new: Item) throws -> Bool {
        var query = query(name)
        query[kSecAttrGeneric] = Self.mark(old)
        let status = SecItemUpdate(query as CFDictionary, Self.attributes(new) as CFDictionary)
        if status == errSecItemNotFound { return false }
        guard status == errSecSuccess else { throw Self.failure(status) }
        return true
    }

    private func check(_ name: String) throws {
        guard (1...200).contains(name.unicodeScalars.count) else {
            throw SecretStoreError(.invalidInput, "A secret's name has 1 to 200 Unicode scalars. Choose another name.")
        }
    }

    private static func attributes(_ item: Item) -> [CFString: Any] {
        [kSecAttrGeneric: mark(item), kSecValueData: item.value ?? Data()]
    }

    private static func mark(_ item: Item) -> Data {
        withUnsafeBytes(of: item.version.bigEndian) { Data($0) } + [item.value == nil ? 0 : 1]
    }

    private static let mismatch = SecretStoreError(
        .versionMismatch, "Somebody else changed this secret meanwhile. Read it again and decide anew.")

    private static func failure(_ status: OSStatus) -> SecretStoreError {
        switch status {
        case errSecInteractionNotAllowed:
            SecretStoreError(.keyUnavailable, "The device is locked. Try again when it was unlocked once.")
        case errSecMissingEntitlement:
            SecretStoreError(.keyUnavailable, "The app is not in this access group. Add it to the entitlements.")
        default:
            SecretStoreError(.storageFailed, "The keychain failed with status \(status). Look it up and try again.")
        }
    }
}
#endif
