import AssentCore
package import Crypto

/// A server's static key for payload encryption, as trust files and handshakes name it.
package struct PayloadKey: Hashable, Sendable {
    /// The 32 bytes of the X25519 public key (RFC 7748 §6.1).
    package let bytes: [UInt8]

    /// - Throws: ``PayloadError/badKey`` for anything but 32 bytes.
    package init(_ bytes: [UInt8]) throws(PayloadError) {
        guard bytes.count == 32 else { throw .badKey }
        self.bytes = bytes
    }

    /// The public half of `key`.
    package init(of key: Curve25519.KeyAgreement.PrivateKey) {
        bytes = Array(key.publicKey.rawRepresentation)
    }

    /// Its name: the thumbprint of its JWK (RFC 7638, RFC 8037 §2).
    package var kid: String {
        let jwk = #"{"crv":"X25519","kty":"OKP","x":"\#(Base64URL.encode(bytes))"}"#
        return Base64URL.encode(SHA2.sha256(Array(jwk.utf8)))
    }

    /// What `key` and this one agree on.
    ///
    /// - Throws: ``PayloadError/badKey`` when that is zero: the key is of small order (RFC 7748 §6.1).
    package func agree(with key: Curve25519.KeyAgreement.PrivateKey) throws(PayloadError) -> [UInt8] {
        do {
            let peer = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: bytes)
            let shared = try key.sharedSecretFromKeyAgreement(with: peer).withUnsafeBytes { Array($0) }
            guard shared.contains(where: { $0 != 0 }) else { throw PayloadError.badKey }
            return shared
        } catch {
            // The library refuses the all-zero result as well.
            throw .badKey
        }
    }
}
