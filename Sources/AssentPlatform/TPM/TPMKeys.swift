#if TPM && os(Linux)
import AssentCore
import Crypto

/// A signing key in a TPM.
struct TPMSigningKey: SigningKey {
    let publicKeyInfo: [UInt8]
    private let provider: TPMKeyProvider
    private let name: String
    private let point: [UInt8]
    private let publicKey: P256.Signing.PublicKey

    init(_ provider: TPMKeyProvider, _ name: String, _ point: [UInt8]) throws {
        self.provider = provider
        self.name = name
        self.point = point
        publicKey = try P256.Signing.PublicKey(x963Representation: point)
        publicKeyInfo = Array(publicKey.derRepresentation)
    }

    var algorithm: SignatureAlgorithm { .es256 }

    func signature(for message: [UInt8]) async throws -> [UInt8] {
        let digest = SHA256.hash(data: message)
        let raw = try await provider.use(name, .signing, point: point) { tpm, key in
            try tpm.sign(Array(digest), key: key)
        }
        guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: raw),
            publicKey.isValidSignature(signature, for: digest)
        else { throw TPMFailure.nonsense("a signature that does not verify") }
        return raw
    }
}

/// A key agreement key in a TPM.
struct TPMAgreementKey: KeyAgreementKey {
    let publicPoint: [UInt8]
    private let provider: TPMKeyProvider
    private let name: String

    init(_ provider: TPMKeyProvider, _ name: String, _ point: [UInt8]) {
        self.provider = provider
        self.name = name
        publicPoint = point
    }

    func sharedSecret(with peer: [UInt8]) async throws -> Secret {
        try PeerPoint.check(peer)
        return try await provider.use(name, .agreement, point: publicPoint) { tpm, key in
            try tpm.agree(peer, key: key)
        }
    }
}
#endif
