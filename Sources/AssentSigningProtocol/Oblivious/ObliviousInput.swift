package import AssentCore
import Crypto
import CryptoExtras
import Foundation

/// The client's side of one evaluation: an input that is blinded, so that the server learns nothing about it. It cannot
/// be stored: with the blind, somebody could test guesses of the input against what was sent.
package struct ObliviousInput {
    /// What is sent to the server.
    package let element: ObliviousElement

    private let blinded: P384._VOPRF.BlindedInput

    /// Blinds `input`.
    ///
    /// - Throws: ``SigningProtocolError`` with `invalidElement`.
    package init(_ input: Secret) throws(SigningProtocolError) {
        do {
            // Which server will evaluate is not known at a change of a password, and has no effect on the blinding.
            let anyKey = P384._VOPRF.PrivateKey(compactRepresentable: false).publicKey
            blinded = try anyKey.blind(input.revealBytes())
            element = try ObliviousElement(Array(blinded.blindedElement.oprfRepresentation))
        } catch {
            throw SigningProtocolError(.invalidElement, "The input cannot be blinded.")
        }
    }

    /// Verifies the server's proof (*c* ‖ *s*, 96 bytes) for the evaluated element (49 bytes), and gives the
    /// function's output for the input (48 bytes). The server's key must be pinned already, or arrive signed.
    ///
    /// - Throws: ``SigningProtocolError`` with `invalidElement` or `invalidProof`, whatever the bytes are.
    package func output(
        by publicKey: ObliviousElement, evaluated: [UInt8], proof: [UInt8]
    ) throws(SigningProtocolError) -> Secret {
        let point = try ObliviousElement(evaluated)
        try ObliviousProof(proof).check(publicKey: publicKey, blinded: element, evaluated: point)
        do {
            let evaluation = try P384._VOPRF.BlindEvaluation(rawRepresentation: evaluated + proof)
            let key = try P384._VOPRF.PublicKey(compressedRepresentation: publicKey.bytes)
            return try Secret(bytes: key.finalize(blinded, using: evaluation))
        } catch {
            throw ObliviousProof.refused
        }
    }
}
