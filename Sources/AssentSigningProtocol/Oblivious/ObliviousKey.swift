package import AssentCore
import Crypto
import CryptoExtras
import Foundation

/// The server's side of the VOPRF (RFC 9497, P384-SHA384): *k*, and its public key.
///
/// Arithmetic with scalars is not constant in time in swift-crypto. A device can have *k* used a few times only, and
/// learns no more than how long a whole answer took.
package struct ObliviousKey: Sendable {
    /// *k*: 48 bytes.
    package let secret: Secret

    package let publicKey: ObliviousElement

    private let key: Locked<P384._VOPRF.PrivateKey>

    /// An element and the proof that it was evaluated with *k*.
    package struct Evaluation: Hashable, Sendable {
        /// The evaluated element: 49 bytes.
        package let evaluated: [UInt8]
        /// *c* ‖ *s*: 96 bytes.
        package let proof: [UInt8]
    }

    /// A new key.
    package init() throws(SigningProtocolError) {
        try self.init(secret: Secret(bytes: P384._VOPRF.PrivateKey(compactRepresentable: false).rawRepresentation))
    }

    /// A key that was stored.
    ///
    /// - Throws: ``SigningProtocolError`` with `invalidElement` unless `secret` has 48 bytes and is a number from 1 to
    ///   the group's order - 1.
    package init(secret: Secret) throws(SigningProtocolError) {
        do {
            // It takes long to make it of the secret, since its public key is calculated.
            let key = try secret.withUnsafeBytes { try P384._VOPRF.PrivateKey(rawRepresentation: $0) }
            publicKey = try ObliviousElement(Array(key.publicKey.oprfRepresentation))
            self.key = Locked(key)
            self.secret = secret
        } catch {
            throw SigningProtocolError(.invalidElement, "This is not a private key of the VOPRF.")
        }
    }

    /// Evaluates a blinded element, and proves it.
    ///
    /// - Throws: ``SigningProtocolError`` with `invalidElement`.
    package func evaluate(_ blinded: ObliviousElement) throws(SigningProtocolError) -> Evaluation {
        do {
            let element = try P384._VOPRF.BlindedElement(oprfRepresentation: blinded.bytes)
            return try key.withLock { key in
                let answer = try key.evaluate(element)
                return Evaluation(
                    evaluated: Array(answer.evaluatedElement.oprfRepresentation),
                    proof: Array(answer.proof.rawRepresentation))
            }
        } catch {
            throw SigningProtocolError(.invalidElement, "The element cannot be evaluated.")
        }
    }
}
