#if canImport(Security)
import AssentCore
import AssentVault
import Crypto
import Dispatch
import Foundation
import Security

/// A key in the enclave by its tag. The key itself is looked up at each use, since a `SecKey` is bound to a thread's
/// prompt.
struct EnclaveKey: Sendable {
    private let tag: Data
    private let accessGroup: String?
    let publicKey: P256.Signing.PublicKey

    /// `nil` when there is no such key.
    init?(query: [CFString: Any], tag: Data, accessGroup: String?) throws {
        guard let key = try Self.find(query) else { return nil }
        var error: Unmanaged<CFError>?
        guard let publicKey = SecKeyCopyPublicKey(key),
            let point = SecKeyCopyExternalRepresentation(publicKey, &error) as Data?
        else { throw SecureEnclaveKeyProvider.failure(error) }
        self.tag = tag
        self.accessGroup = accessGroup
        self.publicKey = try P256.Signing.PublicKey(x963Representation: point)
    }

    /// Uses the key on a thread where it may wait for the user.
    func use(_ body: @escaping @Sendable (SecKey, inout Unmanaged<CFError>?) -> Data?) async throws -> Data {
        let (tag, accessGroup) = (tag, accessGroup)
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result {
                        var query: [CFString: Any] = [
                            kSecClass: kSecClassKey, kSecAttrApplicationTag: tag,
                            kSecAttrTokenID: kSecAttrTokenIDSecureEnclave, kSecUseDataProtectionKeychain: true,
                        ]
                        if let accessGroup { query[kSecAttrAccessGroup] = accessGroup }
                        guard let key = try Self.find(query) else {
                            throw KeyProviderError(
                                .keyLost, "The key is gone from the Secure Enclave. Sign in again to make a new one.")
                        }
                        var error: Unmanaged<CFError>?
                        guard let result = body(key, &error) else { throw SecureEnclaveKeyProvider.failure(error) }
                        return result
                    })
            }
        }
    }

    private static func find(_ query: [CFString: Any]) throws -> SecKey? {
        var query = query
        query[kSecReturnRef] = true
        var result: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return nil }
        guard status == errSecSuccess, let result, CFGetTypeID(result) == SecKeyGetTypeID() else {
            throw SecureEnclaveKeyProvider.failure(status)
        }
        return unsafeDowncast(result, to: SecKey.self)
    }
}

struct EnclaveSigner: SigningKey {
    let key: EnclaveKey

    var algorithm: SignatureAlgorithm { .es256 }
    var publicKeyInfo: [UInt8] { Array(key.publicKey.derRepresentation) }

    func signature(for message: [UInt8]) async throws -> [UInt8] {
        let der = try await key.use { key, error in
            SecKeyCreateSignature(key, .ecdsaSignatureMessageX962SHA256, Data(message) as CFData, &error) as Data?
        }
        return Array(try P256.Signing.ECDSASignature(derRepresentation: der).rawRepresentation)
    }
}

struct EnclaveAgreement: KeyAgreementKey {
    let key: EnclaveKey

    var publicPoint: [UInt8] { Array(key.publicKey.x963Representation) }

    func sharedSecret(with peer: [UInt8]) async throws -> Secret {
        guard peer.count == 65, (try? P256.KeyAgreement.PublicKey(x963Representation: peer)) != nil else {
            throw KeyProviderError(
                .invalidInput, "This is not an uncompressed point on P-256. Check where it came from.")
        }
        let shared = try await key.use { key, error in
            let attributes: [CFString: Any] = [
                kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeyClass: kSecAttrKeyClassPublic,
            ]
            guard let peer = SecKeyCreateWithData(Data(peer) as CFData, attributes as CFDictionary, &error) else {
                return nil
            }
            return SecKeyCopyKeyExchangeResult(
                key, .ecdhKeyExchangeCofactor, peer, [:] as CFDictionary, &error) as Data?
        }
        return Secret(bytes: shared)
    }
}
#endif
