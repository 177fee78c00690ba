public import AssentCore

/// A set of public keys (RFC 7517 §5), usually what an issuer publishes at its `jwks_uri`.
public struct JWKSet: Sendable, Hashable {
    /// How many entries a set may have.
    public static let limit = 100

    /// The keys in their order. Several may have the same `kid`.
    public let keys: [JWK]

    /// A set of these keys.
    public init(_ keys: [JWK]) {
        self.keys = keys
    }

    /// Reads a set. Entries of unknown type, with values out of range or with private values are left out, as RFC 7517
    /// §5 asks, so one bad entry does not stop the others.
    ///
    /// - Throws: ``JOSEError`` with `malformed` when it is not a set, `tooLarge` when it has more than ``limit``
    ///   entries.
    public init(_ json: JSONValue) throws(JOSEError) {
        guard let entries = json["keys"]?.array else { throw JOSEError(.malformed, "The JWK set has no list of keys.") }
        guard entries.count <= Self.limit else {
            throw JOSEError(.tooLarge, "The JWK set has \(entries.count) keys; at most \(Self.limit) are read.")
        }
        var keys: [JWK] = []
        for entry in entries {
            guard entry.object != nil else { throw JOSEError(.malformed, "A JWK of the set is not a JSON object.") }
            if let key = try? JWK(entry) { keys.append(key) }
        }
        self.keys = keys
    }

    /// The set as JSON.
    public var json: JSONValue { ["keys": .array(keys.map(\.json))] }

    /// The keys that could have made a signature: those called `keyID`, or all when the header names none, that verify
    /// `algorithm` (`nil` for any).
    public func candidates(keyID: String?, algorithm: SignatureAlgorithm?) -> [JWK] {
        keys.filter { key in
            if let keyID {
                guard let own = key.keyID, own.utf8.elementsEqual(keyID.utf8) else { return false }
            }
            return algorithm.map(key.verifies) ?? true
        }
    }
}
