package import AssentCore

/// The protected header of a proof, checked: all that is the same in the proofs of one key. It is a class, so that one
/// that is remembered is handed out without copying its key.
final class DPoPHeader: Sendable {
    let key: JWK
    let algorithm: SignatureAlgorithm
    /// The key's thumbprint.
    let thumbprint: String

    /// - Throws: ``JOSEError`` with the code of what is wrong.
    init(encoded: Substring, algorithms: Set<SignatureAlgorithm>) throws(JOSEError) {
        let header = try CompactHeader(encoded: encoded, refused: UnverifiedJWS.refusedMembers)
        let algorithm = SignatureAlgorithm(rawValue: header.alg)
        guard SignatureAlgorithm.supported.contains(algorithm) else { throw JOSEError(.unsupportedAlgorithm) }
        guard let type = header.type, CompactHeader.same(type, as: DPoPProof.type) else {
            throw JOSEError(.wrongType, "The header's typ is not \(DPoPProof.type).")
        }
        guard let jwk = header.object["jwk"] else {
            throw JOSEError(.malformed, "The proof has no jwk in its header.")
        }
        let key = try JWK(jwk)
        guard algorithm != .hs256, algorithms.contains(algorithm) else {
            throw JOSEError(.algorithmNotAllowed, "\(algorithm) is not allowed here.")
        }
        guard key.verifies(algorithm) else { throw JOSEError(.algorithmMismatch, "The key is not for \(algorithm).") }
        if let keyID = header.keyID, let own = key.keyID, !keyID.utf8.elementsEqual(own.utf8) {
            throw JOSEError(.noMatchingKey)
        }
        (self.key, self.algorithm, thumbprint) = (key, algorithm, key.thumbprint)
    }

    /// Whether `signature` is that of `message`.
    func isValid(_ signature: [UInt8], for message: [UInt8]) -> Bool {
        key.material.isValid(signature, for: message, algorithm: algorithm)
    }
}

/// Reads the headers of proofs. A client sends the same one with each call, and reading it costs more than verifying
/// the signature, so those that came with a valid signature are remembered, a limited number of them.
package final class DPoPHeaders: Sendable {
    /// Bytes of a header that is remembered; one with an RSA key of 3072 bits has fewer.
    private static let byteLimit = 1024

    private let algorithms: Set<SignatureAlgorithm>
    private let known: Locked<RecentValues<String, DPoPHeader>>?

    /// - Parameters:
    ///   - algorithms: those that are accepted.
    ///   - limit: how many headers are remembered at most; none for 0.
    package init(_ algorithms: Set<SignatureAlgorithm> = DPoPProof.algorithms, limit: Int = 4096) {
        self.algorithms = algorithms
        known = limit > 0 ? Locked(RecentValues(generation: max(1, limit / 2))) : nil
    }

    /// How many are remembered.
    var count: Int { known?.withLock { $0.count } ?? 0 }

    /// - Returns: the header, and whether its key has signed before.
    /// - Throws: ``JOSEError`` with the code of what is wrong.
    func header(_ encoded: Substring) throws(JOSEError) -> (header: DPoPHeader, isKnown: Bool) {
        if let known, encoded.utf8.count <= Self.byteLimit {
            let name = String(encoded)
            if let header = known.withLock({ $0.find(name) }) { return (header, true) }
        }
        return (try DPoPHeader(encoded: encoded, algorithms: algorithms), false)
    }

    /// Remembers a header that came with a valid signature.
    func remember(_ header: DPoPHeader, _ encoded: Substring) {
        guard let known, encoded.utf8.count <= Self.byteLimit else { return }
        known.withLock { $0.keep(header, for: String(encoded)) }
    }
}
