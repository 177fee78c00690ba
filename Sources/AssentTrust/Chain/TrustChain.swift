package import AssentCore
package import AssentSigningProtocol

/// The versions of one trust file, without a gap, each verified with the keys of the one before.
package struct TrustChain: Sendable {
    package private(set) var files: [TrustFile]

    /// A chain that begins with a file which is trusted for another reason: it is shipped with the app.
    package init(from shipped: TrustFile) { files = [shipped] }

    /// Adds the next version.
    ///
    /// - Throws: ``TrustFileError``.
    package mutating func append(_ text: String) throws(TrustFileError) {
        files.append(try newest.successor(text))
    }

    package var newest: TrustFile { files[files.endIndex - 1] }

    /// Signs the next version and adds it.
    ///
    /// - Throws: ``TrustFileError``, and what the key throws.
    package mutating func sign(_ content: TrustContent, with key: any SigningKey) async throws {
        try append(try await TrustFile.sign(content, with: key).compact)
    }

    /// The newest version after the loss of a key: its next version, which one of the other keys signs, and which has
    /// `fresh` in the lost one's place.
    ///
    /// - Parameters:
    ///   - lost: the key.
    ///   - fresh: a new key.
    ///   - keys: what can still sign.
    /// - Returns: the next version; `nil` when no key that is left may sign it.
    /// - Throws: ``TrustFileError``, and what a key throws.
    package func recovered(
        from lost: KeyThumbprint, with fresh: ProtocolKey, signingWith keys: [any SigningKey]
    ) async throws -> TrustFile? {
        let left = newest.content.keys.filter { $0.thumbprint != lost }
        for key in keys where left.contains(try ProtocolKey(key)) {
            var chain = self
            try await chain.sign(newest.content.following(keys: left + [fresh]), with: key)
            return chain.newest
        }
        return nil
    }
}

extension TrustContent {
    /// The same as the next version, with other keys.
    fileprivate func following(keys: [ProtocolKey]) -> TrustContent {
        TrustContent(
            audience: audience, version: version + 1, issuedAt: issuedAt, expires: expires, keys: keys, hosts: hosts,
            issuer: issuer, identity: identity, payload: payload, config: config, controls: controls, source: source,
            development: development)
    }
}
