import AssentCore
import X509

/// One of the pinned keys is in the path.
struct PinRule: PathRule {
    let pins: Set<Pin>

    func failure(of path: UnverifiedCertificateChain) -> TrustFailure? {
        SubjectPublicKeyInfo.contains(pins, in: path.compactMap(\.derBytes)) ? nil : .noPinnedKey
    }
}
