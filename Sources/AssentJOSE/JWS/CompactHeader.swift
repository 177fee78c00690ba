import AssentCore

/// The header of a compact JWS or JWE, with the checks that both need.
struct CompactHeader: Sendable {
    let object: JSONObject
    let alg: String
    let keyID: String?
    let type: String?

    /// - Throws: ``JOSEError`` with `malformed`, or `unsupportedExtension` when the header has a member out of
    ///   `refused`.
    init(encoded: Substring, refused: [String]) throws(JOSEError) {
        guard let bytes = Base64URL.decode(encoded) else { throw JOSEError(.malformed, "The header is not base64url.") }
        let value: JSONValue
        do {
            value = try JSONValue.parse(bytes, limits: JSONLimits(bytes: 32 << 10, depth: 8, values: 1000))
        } catch {
            throw JOSEError(.malformed, "The header is not acceptable JSON. \(error.detail)")
        }
        guard let object = value.object else { throw JOSEError(.malformed, "The header is not a JSON object.") }
        for name in refused where object[name] != nil {
            throw JOSEError(.unsupportedExtension, "The header has \(name), which is not supported.")
        }
        func text(_ name: String) throws(JOSEError) -> String? {
            guard let value = object[name] else { return nil }
            guard let text = value.string else {
                throw JOSEError(.malformed, "The header member \(name) is not a string.")
            }
            return text
        }
        guard let alg = try text("alg") else { throw JOSEError(.malformed, "The header has no alg.") }
        self.object = object
        self.alg = alg
        keyID = try text("kid")
        type = try text("typ")
        _ = try text("cty")
    }

    /// Whether a `typ` or `cty` names a media type: without regard to case and to a leading `application/` (RFC 7515
    /// §4.1.9).
    static func same(_ value: String, as type: String) -> Bool {
        func short(_ text: String) -> String {
            let text = text.lowercased()
            let prefix = "application/"
            guard text.hasPrefix(prefix), !text.dropFirst(prefix.count).contains("/") else { return text }
            return String(text.dropFirst(prefix.count))
        }
        return short(value) == short(type)
    }
}
