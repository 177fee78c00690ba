package import AssentCore
package import AssentJOSE

/// The public keys by which a client proves who it is (`private_key_jwt`, OpenID Connect Core §9).
package struct ClientKeys: Sendable, Hashable {
    /// Where the keys are.
    package enum Source: Sendable, Hashable {
        /// In the operator's file (`jwks`).
        case listed(JWKSet)
        /// At this address (`jwks_uri`), from which the server fetches them.
        case fetched(String)
    }

    /// How many keys a set may have: each that fits may be tried for an assertion without `kid`.
    package static let limit = 32

    /// What assertions may be signed with unless the client says otherwise (FAPI 2.0 Security Profile, 5.4).
    package static let usualAlgorithms: [SignatureAlgorithm] = [.es256, .ps256, .edDSA]

    /// All that a client can choose among.
    package static let knownAlgorithms: [SignatureAlgorithm] = usualAlgorithms + [.rs256]

    /// Where the keys are.
    package var source: Source

    /// What assertions may be signed with; some of ``knownAlgorithms``.
    package var algorithms: Set<SignatureAlgorithm>

    /// Keys with the algorithms that are usual.
    package init(_ source: Source, algorithms: Set<SignatureAlgorithm> = Set(usualAlgorithms)) {
        self.source = source
        self.algorithms = algorithms
    }

    /// What is wrong with them, one sentence each; empty when nothing is.
    var faults: [String] {
        var faults: [String] = []
        if algorithms.isEmpty || !algorithms.isSubset(of: Self.knownAlgorithms) {
            faults.append("assertions are signed with ES256, PS256, EdDSA or RS256")
        }
        if case .listed(let set) = source {
            if !(1...Self.limit).contains(set.keys.count) { faults.append("a key set has 1 to \(Self.limit) keys") }
            if !set.keys.allSatisfy({ algorithms.contains(where: $0.verifies) }) {
                faults.append("a key does not fit the algorithms of its assertions")
            }
        }
        return faults
    }

    /// Reads a key set that an operator has written. Nothing in it is left out: a key that cannot be used is a mistake.
    ///
    /// - Parameters:
    ///   - json: the set (RFC 7517 §5).
    ///   - algorithms: what the keys are for.
    /// - Returns: the set.
    /// - Throws: ``/AssentJOSE/JOSEError``, whose detail says which key is wrong and why.
    package static func listed(
        _ json: JSONValue, for algorithms: Set<SignatureAlgorithm>
    ) throws(JOSEError) -> JWKSet {
        guard let entries = json["keys"]?.array else {
            throw JOSEError(.malformed, "must be a key set, for example {keys: [{kty: EC, crv: P-256, x: …, y: …}]}")
        }
        guard (1...limit).contains(entries.count) else {
            throw JOSEError(.tooLarge, "has \(entries.count) keys; 1 to \(limit) are possible")
        }
        var keys: [JWK] = []
        for (index, entry) in entries.enumerated() {
            let key: JWK
            do {
                key = try JWK(entry)
            } catch {
                let advice = error.code == .privateKeyRefused ? " Only the public key belongs here." : ""
                throw JOSEError(error.code, "key \(index + 1) cannot be used. \(error.detail)\(advice)")
            }
            guard algorithms.contains(where: key.verifies) else {
                let names = algorithms.map(\.rawValue).sorted().joined(separator: ", ")
                throw JOSEError(.algorithmMismatch, "key \(index + 1) cannot verify \(names)")
            }
            guard !keys.contains(where: { $0.thumbprint == key.thumbprint }) else {
                throw JOSEError(.malformed, "key \(index + 1) is there twice")
            }
            keys.append(key)
        }
        return JWKSet(keys)
    }

    /// Reads a key set that a client publishes. Keys that cannot be used are left out, as RFC 7517 §5 asks.
    ///
    /// - Throws: ``/AssentJOSE/JOSEError`` with `tooLarge` for more than ``limit`` keys, `malformed` when it is not a
    ///   key set.
    package static func published(_ bytes: [UInt8]) throws(JOSEError) -> JWKSet {
        let json: JSONValue
        do {
            json = try JSONValue.parse(bytes, limits: JSONLimits(bytes: 64 << 10, depth: 8, values: 4000))
        } catch {
            throw JOSEError(.malformed, "The key set is not acceptable JSON. \(error.detail)")
        }
        guard let entries = json["keys"]?.array else { throw JOSEError(.malformed, "The key set has no list of keys.") }
        guard entries.count <= limit else {
            throw JOSEError(.tooLarge, "The key set has \(entries.count) keys; at most \(limit) are read.")
        }
        return try JWKSet(json)
    }
}

/// Gives the key sets that clients publish (`jwks_uri`).
package protocol ClientKeySets: Sendable {
    /// The key set at an address, which may have been fetched a while ago. It is fetched anew when it lacks a key that
    /// could be meant, but not more often than a limit of its own allows.
    ///
    /// - Parameters:
    ///   - url: the address.
    ///   - keyID: the `kid` that an assertion names.
    ///   - algorithm: what the assertion says that it is signed with.
    /// - Returns: the set.
    /// - Throws: the error of the source, when it has no key set that can be used now.
    func keys(at url: String, keyID: String?, algorithm: SignatureAlgorithm) async throws -> JWKSet
}
