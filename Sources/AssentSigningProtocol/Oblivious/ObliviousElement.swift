import Crypto
import Foundation

/// A point of the VOPRF (RFC 9497, P384-SHA384) as it stands in messages: the server's public key, a blinded or an
/// evaluated element. It is never infinity, which has no encoding of 49 bytes.
package struct ObliviousElement: Hashable, Sendable {
    /// The compressed point (SEC 1 §2.3.3): 49 bytes.
    package let bytes: [UInt8]

    /// Reads a point.
    ///
    /// - Throws: ``SigningProtocolError`` with `invalidElement` unless these are 49 bytes that begin with 02 or 03,
    ///   with an x below p, of a point on the curve.
    package init(_ bytes: [UInt8]) throws(SigningProtocolError) {
        // The decoders below also take other encodings of the same point.
        guard bytes.count == 49, bytes.first == 2 || bytes.first == 3,
            (try? P384.KeyAgreement.PublicKey(compressedRepresentation: bytes)) != nil
        else { throw SigningProtocolError(.invalidElement, "An element is not a point of the curve.") }
        self.bytes = bytes
    }

    func agreementKey() throws -> P384.KeyAgreement.PublicKey {
        try P384.KeyAgreement.PublicKey(compressedRepresentation: bytes)
    }
}

/// The proof that an element was evaluated with the private part of a public key: two scalars, *c* and *s*.
struct ObliviousProof {
    let challenge: P384.KeyAgreement.PrivateKey
    let response: P384.KeyAgreement.PrivateKey

    /// Reads a proof of 96 bytes; refuses scalars that are 0, or not below the group's order.
    init(_ bytes: [UInt8]) throws(SigningProtocolError) {
        guard bytes.count == 96,
            let challenge = try? P384.KeyAgreement.PrivateKey(rawRepresentation: bytes.prefix(48)),
            let response = try? P384.KeyAgreement.PrivateKey(rawRepresentation: bytes.suffix(48))
        else { throw Self.refused }
        (self.challenge, self.response) = (challenge, response)
    }

    /// Refuses a proof that would make *s*·G + *c*·pk or *s*·B + *c*·E infinity, B being the blinded and E the
    /// evaluated element. `_VOPRF` ends the process on such a sum, and has no way to ask before.
    ///
    /// A sum is infinity only if its two terms have the same x. They are computed as key agreements, with the scalars
    /// as private keys. Terms that are equal, and not each other's negative, have the same x, too: they are refused
    /// with the others, though their sum is a point. An honest server makes such a proof once in 2^383 times.
    func check(publicKey: ObliviousElement, blinded: ObliviousElement, evaluated: ObliviousElement)
        throws(SigningProtocolError)
    {
        do {
            let generated = response.publicKey.rawRepresentation.prefix(48)
            let (key, one) = (try publicKey.agreementKey(), try blinded.agreementKey())
            let other = try evaluated.agreementKey()
            let terms = [
                try challenge.sharedSecretFromKeyAgreement(with: key).withUnsafeBytes { Data($0) },
                try response.sharedSecretFromKeyAgreement(with: one).withUnsafeBytes { Data($0) },
                try challenge.sharedSecretFromKeyAgreement(with: other).withUnsafeBytes { Data($0) },
            ]
            guard generated != terms[0], terms[1] != terms[2] else { throw Self.refused }
        } catch {
            throw Self.refused
        }
    }

    static var refused: SigningProtocolError {
        SigningProtocolError(.invalidProof, "The proof of an evaluation is not good.")
    }
}
