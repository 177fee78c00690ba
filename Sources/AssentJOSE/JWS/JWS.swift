public import AssentCore

/// Signing in the compact form of RFC 7515.
public enum JWS {
    /// Signs `payload`. The header gets `alg` from the key; `kid`, `typ` and anything else are the caller's.
    ///
    /// - Parameters:
    ///   - payload: the content, signed as it is.
    ///   - header: members besides `alg`; not `alg`, `crit` or `b64`.
    ///   - key: what signs.
    /// - Returns: `header.payload.signature`.
    /// - Throws: ``JOSEError`` with `malformed` for a forbidden header member, `unsupportedAlgorithm`, `keyFailed` when
    ///   the handle gives something that is not a signature; and what the handle throws.
    public static func sign(
        _ payload: [UInt8], header: JSONObject = JSONObject(), with key: any SigningKey
    ) async throws -> String {
        try await sign(payload, header: EncodedHeader(header, algorithm: key.algorithm), with: key)
    }

    /// A protected header as it stands in the text, for the signatures of one algorithm.
    struct EncodedHeader: Sendable {
        fileprivate let text: String

        /// - Throws: ``JOSEError`` with `malformed` for a forbidden header member, or `unsupportedAlgorithm`.
        init(_ header: JSONObject, algorithm: SignatureAlgorithm) throws(JOSEError) {
            guard SignatureAlgorithm.supported.contains(algorithm) else {
                throw JOSEError(.unsupportedAlgorithm, "\(algorithm) is not supported.")
            }
            for name in ["alg", "crit", "b64"] where header[name] != nil {
                throw JOSEError(.malformed, "The header member \(name) is set here: leave it out.")
            }
            guard header.duplicateNames.isEmpty else {
                throw JOSEError(.malformed, "A member of the header is there twice.")
            }
            let members = [JSONObject.Member(name: "alg", value: .string(algorithm.rawValue))] + header.members
            text = Base64URL.encode(JSONValue.object(JSONObject(members)).serializedBytes())
        }
    }

    /// Signs `payload` under a header that was made for this key's algorithm.
    static func sign(_ payload: [UInt8], header: EncodedHeader, with key: any SigningKey) async throws -> String {
        let algorithm = key.algorithm
        let input = header.text + "." + Base64URL.encode(payload)
        let signature = try await key.signature(for: Array(input.utf8))
        guard !signature.isEmpty, algorithm.signatureLength.map({ $0 == signature.count }) ?? true else {
            throw JOSEError(
                .keyFailed, "The key gave a signature of \(signature.count) bytes, and \(algorithm) has another length."
            )
        }
        return input + "." + Base64URL.encode(signature)
    }
}
