import AssentCore
import Crypto

/// A peer's public point, checked before a device sees it: not every device checks.
enum PeerPoint {
    static func check(_ point: [UInt8]) throws(KeyProviderError) {
        guard point.count == 65, (try? P256.KeyAgreement.PublicKey(x963Representation: point)) != nil else {
            throw KeyProviderError(
                .invalidInput, "The peer's key is not an uncompressed point of P-256. Ask the peer for another.")
        }
    }
}
