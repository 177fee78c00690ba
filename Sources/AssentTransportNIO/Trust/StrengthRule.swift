import Crypto
import X509

/// Signatures without SHA-1 or MD5, RSA keys of 2048 to 8192 bits, curves from P-256, and paths of at most eight
/// certificates.
struct StrengthRule: PathRule {
    private static let longestPath = 8
    private static let signatures: Set<Certificate.SignatureAlgorithm> = [
        .ecdsaWithSHA256, .ecdsaWithSHA384, .ecdsaWithSHA512, .ed25519,
        .sha256WithRSAEncryption, .sha384WithRSAEncryption, .sha512WithRSAEncryption,
    ]

    func failure(of path: UnverifiedCertificateChain) -> TrustFailure? {
        guard path.count <= Self.longestPath else { return .pathTooLong }
        for (index, certificate) in path.enumerated() {
            // Nothing rests on a trust anchor's signature of itself.
            let isAnchor = index == path.count - 1
            guard isAnchor || Self.signatures.contains(certificate.signatureAlgorithm) else { return .weakSignature }
            guard Self.isStrong(certificate) else { return .weakKey }
        }
        return nil
    }

    private static func isStrong(_ certificate: Certificate) -> Bool {
        let key = certificate.publicKey
        if P256.Signing.PublicKey(key) != nil || P384.Signing.PublicKey(key) != nil
            || P521.Signing.PublicKey(key) != nil || Curve25519.Signing.PublicKey(key) != nil
        {
            return true
        }
        guard let der = certificate.derBytes, let info = SubjectPublicKeyInfo.bytes(ofCertificate: der),
            let bits = SubjectPublicKeyInfo.rsaBits(info)
        else { return false }
        return (2048...8192).contains(bits)
    }
}
