import AssentCore
import AssentSigningProtocol

/// The public keys of devices that were read lately, by their text. A device makes several calls one after the other,
/// and to read its key takes nearly as long as to verify what it has signed.
final class DeviceKeys: Sendable {
    private let known = Locked(RecentValues<String, ProtocolKey>(generation: 512))

    /// The key that a stored text is.
    ///
    /// - Throws: `JSONError`, `SigningProtocolError` for a text that is not a key.
    func key(_ jwk: String) throws -> ProtocolKey {
        if let key = known.withLock({ $0.find(jwk) }) { return key }
        let key = try ProtocolKey(JSONValue.parse(jwk))
        known.withLock { $0.keep(key, for: jwk) }
        return key
    }
}
