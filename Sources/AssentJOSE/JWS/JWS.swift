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
        fileprivate let text: [UInt8]

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
            var text: [UInt8] = []
            Base64URL.append(JSONValue.object(JSONObject(members)).serializedBytes(), to: &text)
            self.text = text
        }
    }

    /// Signs `payload` under a header that was made for this key's algorithm.
    static func sign(_ payload: [UInt8], header: EncodedHeader, with key: any SigningKey) async throws -> String {
        let algorithm = key.algorithm
        // In one piece of memory that has room for the signature: a client signs a proof for each call.
        let dot = UInt8(ascii: ".")
        let room = Base64URL.length(of: payload.count) + Base64URL.length(of: algorithm.signatureLength ?? 256) + 2
        var text: [UInt8] = []
        text.reserveCapacity(header.text.count + room)
        text += header.text
        text.append(dot)
        Base64URL.append(payload, to: &text)
        let signature = try await key.signature(for: text)
        guard !signature.isEmpty, algorithm.signatureLength.map({ $0 == signature.count }) ?? true else {
            throw JOSEError(
                .keyFailed, "The key gave a signature of \(signature.count) bytes, and \(algorithm) has another length."
            )
        }
        text.append(dot)
        Base64URL.append(signature, to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}
