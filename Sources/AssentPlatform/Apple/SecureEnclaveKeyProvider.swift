#if canImport(Security)
public import AssentCore
public import AssentVault
import Crypto
import Foundation
import Security

/// Keys in the Secure Enclave (Apple Platform Security, "Keychain data protection"; `kSecAttrTokenIDSecureEnclave`).
///
/// A key stays on the device it was made on: it is neither in backups nor synchronized. Which people must be there when
/// it is used, and whether another finger or face loses it, follows from ``AssentVault/KeyOptions``; the system asks
/// them itself.
public struct SecureEnclaveKeyProvider: KeyProvider {
    private enum Use: String {
        case signing
        case agreement
    }

    private let options: KeyOptions
    private let accessGroup: String?
    private let prefix: String

    /// Keys of this app.
    ///
    /// - Parameters:
    ///   - demand: what is asked of new keys; keys that exist keep theirs.
    ///   - accessGroup: the group of apps that may use the keys. Without one, this app alone.
    /// - Throws: ``AssentCore/KeyProviderError`` when this device cannot do what is demanded.
    public init(
        demand: KeyDemand = KeyDemand(level: .requireHardware, separateChip: true), accessGroup: String? = nil
    ) throws {
        options = try KeyOptions.choose(for: demand, on: AppleDevice.capabilities)
        guard options.protection == .hardware else {
            throw KeyProviderError(.unsupported, "The Secure Enclave makes no software keys. Use SoftwareKeyProvider.")
        }
        self.accessGroup = accessGroup
        prefix = "assent."
    }

    /// `secure-enclave`
    public var kind: String { "secure-enclave" }

    /// Always hardware.
    public var protection: KeyProtection { .hardware }

    /// Whether this device has an enclave, and this process may use it.
    public var availability: KeyAvailability {
        get async {
            AppleDevice.hasSecureEnclave
                ? .available
                : .unavailable(reason: "This device or simulator has no Secure Enclave. Run on a device that has one.")
        }
    }

    /// The names of all keys that were made here.
    public func keyNames() async throws -> [String] {
        var query = base()
        query[kSecReturnAttributes] = true
        query[kSecMatchLimit] = kSecMatchLimitAll
        var result: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess, let items = result as? [[CFString: Any]] else { throw Self.failure(status) }
        let names = items.compactMap { item -> String? in
            guard let tag = item[kSecAttrApplicationTag] as? Data else { return nil }
            let parts = String(decoding: tag, as: UTF8.self).dropFirst(prefix.count)
                .split(separator: "/", maxSplits: 1)
            return tag.starts(with: Data(prefix.utf8)) && parts.count == 2 ? String(parts[1]) : nil
        }
        return Set(names).sorted()
    }

    /// The ES256 key called `name`.
    public func signingKey(named name: String) async throws -> (any SigningKey)? {
        try KeyName.check(name)
        return try handle(tag(name, .signing)).map(EnclaveSigner.init)
    }

    /// Makes an ES256 key; other algorithms are `unsupported`.
    public func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        guard algorithm == .es256 else {
            throw KeyProviderError(.unsupported, "The Secure Enclave signs with ES256 only. Ask for that.")
        }
        return EnclaveSigner(key: try make(name, .signing))
    }

    /// The key agreement key called `name`.
    public func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? {
        try KeyName.check(name)
        return try handle(tag(name, .agreement)).map(EnclaveAgreement.init)
    }

    /// Makes a P-256 key agreement key.
    public func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey {
        EnclaveAgreement(key: try make(name, .agreement))
    }

    /// Destroys both kinds of key called `name`.
    public func removeKey(named name: String) async throws {
        try KeyName.check(name)
        for use in [Use.signing, .agreement] {
            var query = base()
            query[kSecAttrApplicationTag] = tag(name, use)
            let status = SecItemDelete(query as CFDictionary)
            guard [errSecSuccess, errSecItemNotFound].contains(status) else { throw Self.failure(status) }
        }
    }

    /// The key with which a vendor's iOS SDK sealed its values, for ``AssentVault/VendorSealed``. This app must be the
    /// one that the SDK was in.
    ///
    /// - Parameter applicationTag: `com.forgerock.ios.securedKey.identifier` or
    ///   `com.pingidentity.securedKey.identifier`.
    /// - Returns: `nil` when there is none.
    /// - Throws: ``AssentCore/KeyProviderError`` when the keychain refuses.
    public func vendorKey(applicationTag: String) throws -> (any KeyAgreementKey)? {
        try handle(Data(applicationTag.utf8)).map(EnclaveAgreement.init)
    }

    private func tag(_ name: String, _ use: Use) -> Data { Data("\(prefix)\(use.rawValue)/\(name)".utf8) }

    private func base() -> [CFString: Any] {
        var query: [CFString: Any] = [
            kSecClass: kSecClassKey, kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom,
            kSecAttrTokenID: kSecAttrTokenIDSecureEnclave, kSecUseDataProtectionKeychain: true,
        ]
        if let accessGroup { query[kSecAttrAccessGroup] = accessGroup }
        return query
    }

    private func handle(_ tag: Data) throws -> EnclaveKey? {
        var query = base()
        query[kSecAttrApplicationTag] = tag
        return try EnclaveKey(query: query, tag: tag, accessGroup: accessGroup)
    }

    private func make(_ name: String, _ use: Use) throws -> EnclaveKey {
        try KeyName.check(name)
        let tag = tag(name, use)
        guard try handle(tag) == nil else {
            throw KeyProviderError(
                .keyExists, "There is a key called \(name) already. Find it, or choose another name.")
        }
        var flags: SecAccessControlCreateFlags = .privateKeyUsage
        switch options.presence {
        case .biometry: flags.insert(options.isInvalidatedByBiometricEnrollment ? .biometryCurrentSet : .biometryAny)
        case .pin: flags.insert(.devicePasscode)
        case nil: break
        }
        var error: Unmanaged<CFError>?
        guard
            let access = SecAccessControlCreateWithFlags(
                nil, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, flags, &error)
        else { throw Self.failure(error) }
        var attributes: [CFString: Any] = [
            kSecAttrIsPermanent: true, kSecAttrApplicationTag: tag, kSecAttrAccessControl: access,
        ]
        if let accessGroup { attributes[kSecAttrAccessGroup] = accessGroup }
        let parameters: [CFString: Any] = [
            kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeySizeInBits: 256,
            kSecAttrTokenID: kSecAttrTokenIDSecureEnclave, kSecUseDataProtectionKeychain: true,
            kSecPrivateKeyAttrs: attributes,
        ]
        guard SecKeyCreateRandomKey(parameters as CFDictionary, &error) != nil else { throw Self.failure(error) }
        guard let key = try handle(tag) else {
            throw KeyProviderError(.failed, "The Secure Enclave made a key and does not find it. Restart the device.")
        }
        return key
    }

    static func failure(_ status: OSStatus) -> KeyProviderError {
        switch status {
        case errSecUserCanceled: KeyProviderError(.userAbsent, "The user did not agree. Ask again when they want it.")
        case errSecAuthFailed: KeyProviderError(.lockedOut, "Biometry is locked. Let the user unlock the device first.")
        case errSecInteractionNotAllowed:
            KeyProviderError(
                .unavailable, "The device is locked, or nobody can be asked now. Try again when it is open.")
        case errSecMissingEntitlement:
            KeyProviderError(.unavailable, "The app is not in this access group. Add it to the entitlements.")
        default: KeyProviderError(.failed, "The keychain failed with status \(status). Look it up and try again.")
        }
    }

    static func failure(_ error: Unmanaged<CFError>?) -> KeyProviderError {
        guard let error = error?.takeRetainedValue() else { return failure(errSecInternalError) }
        let code = OSStatus(truncatingIfNeeded: CFErrorGetCode(error))
        guard CFErrorGetDomain(error) as String == AppleDevice.authenticationErrorDomain else { return failure(code) }
        return failure(AppleDevice.isLockout(code) ? errSecAuthFailed : errSecUserCanceled)
    }
}
#endif
