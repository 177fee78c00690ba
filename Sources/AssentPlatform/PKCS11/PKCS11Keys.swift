#if PKCS11 && os(Linux)
import AssentCore
import CP11Kit
import Crypto

/// What is known of a key in a token.
struct PKCS11KeyReference: Sendable {
    let id: [UInt8]
    let point: [UInt8]
    /// Whether the token wants the PIN for every use (`CKA_ALWAYS_AUTHENTICATE`).
    let asksEachTime: Bool
}

/// A signing key in a token.
struct PKCS11SigningKey: SigningKey {
    let publicKeyInfo: [UInt8]
    private let provider: PKCS11KeyProvider
    private let reference: PKCS11KeyReference
    private let publicKey: P256.Signing.PublicKey

    init(_ provider: PKCS11KeyProvider, _ reference: PKCS11KeyReference) throws {
        self.provider = provider
        self.reference = reference
        publicKey = try P256.Signing.PublicKey(x963Representation: reference.point)
        publicKeyInfo = Array(publicKey.derRepresentation)
    }

    var algorithm: SignatureAlgorithm { .es256 }

    func signature(for message: [UInt8]) async throws -> [UInt8] {
        let digest = SHA256.hash(data: message)
        let raw = try await provider.use(reference) { session, key, pin in
            try session.sign(Array(digest), key: key, contextPIN: pin)
        }
        guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: raw),
            publicKey.isValidSignature(signature, for: digest)
        else { throw PKCS11Failure.nonsense("a signature that does not verify") }
        return raw
    }
}

/// A key agreement key in a token.
struct PKCS11AgreementKey: KeyAgreementKey {
    private let provider: PKCS11KeyProvider
    private let reference: PKCS11KeyReference

    init(_ provider: PKCS11KeyProvider, _ reference: PKCS11KeyReference) {
        self.provider = provider
        self.reference = reference
    }

    var publicPoint: [UInt8] { reference.point }

    func sharedSecret(with peer: [UInt8]) async throws -> Secret {
        try PeerPoint.check(peer)
        return try await provider.use(reference) { session, key, _ in try session.agree(peer, key: key) }
    }
}
#endif
