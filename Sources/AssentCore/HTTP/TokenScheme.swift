/// By which scheme a request presents an access token.
package enum TokenScheme: String, Sendable, Hashable, CaseIterable {
    /// Someone who has the token may use it (RFC 6750 §2.1).
    case bearer = "Bearer"
    /// The token belongs to a key, and the request proves that its sender has that key (RFC 9449 §7.1).
    case dpop = "DPoP"

    /// The scheme of a token that belongs to the key with this thumbprint, or to nobody's.
    package init(boundTo keyThumbprint: String?) { self = keyThumbprint == nil ? .bearer : .dpop }

    /// The value of `Authorization` that carries `token`.
    package func field(_ token: Secret) -> String { "\(rawValue) \(token.reveal())" }

    /// The scheme at the beginning of an `Authorization` field; `nil` for any other. Its case does not matter (RFC 9110
    /// §11.1). It also ends at a tab, which no token may follow: a field with a scheme of ours never counts as none.
    init?(of field: String) {
        let name = Substring(field.utf8.prefix { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") })
        guard let scheme = Self.allCases.first(where: { name.equalsIgnoringASCIICase($0.rawValue) }) else { return nil }
        self = scheme
    }
}
