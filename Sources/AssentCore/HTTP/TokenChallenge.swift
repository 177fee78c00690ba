package import HTTPTypes

/// How a client hears what its access token, or the proof beside it, lacks (RFC 6750 §3, RFC 9449 §7.1). It is one
/// challenge without white space after its commas: some of AM's clients split a field there.
package struct TokenChallenge: Sendable, Hashable {
    private let scheme: TokenScheme

    /// The value of `error`; `nil` for a request that has no token.
    package var error: String?

    /// Parameters behind `error`.
    package var parameters: [Challenge.Parameter] = []

    /// What proofs may be signed with, as `algs` lists it.
    package static let algorithms = "ES256 ES384 PS256 EdDSA"

    /// A challenge of a scheme.
    package init(_ scheme: TokenScheme, error: String? = nil, parameters: [Challenge.Parameter] = []) {
        self.scheme = scheme
        self.error = error
        self.parameters = parameters
    }

    /// The answer to a token or a proof that is refused where a service wants these scopes: its status, and the value
    /// of `WWW-Authenticate`.
    ///
    /// - Throws: ``WireError`` when a value has control characters.
    package static func answer(
        _ scheme: TokenScheme, error: String?, scopes: [String]
    ) throws(WireError) -> (status: Int, field: String) {
        guard error == "insufficient_scope" else {
            return (401, try TokenChallenge(scheme, error: error).fieldValue())
        }
        let all = scopes.joined(separator: " ")
        guard scheme != .bearer else { return (403, #"Bearer error="insufficient_scope", scope="\#(all)""#) }
        let parameters: [Challenge.Parameter] = scopes.isEmpty ? [] : [.init(name: "scope", value: all)]
        return (403, try TokenChallenge(scheme, error: error, parameters: parameters).fieldValue())
    }

    /// The value of `WWW-Authenticate`, behind the realm where one is named.
    ///
    /// - Throws: ``WireError`` when a value has control characters.
    package func fieldValue(realm: String? = nil) throws(WireError) -> String {
        var all: [Challenge.Parameter] = []
        if let realm { all.append(.init(name: "realm", value: realm)) }
        if let error { all.append(.init(name: "error", value: error)) }
        all += parameters
        if scheme == .dpop { all.append(.init(name: "algs", value: Self.algorithms)) }
        return try Challenge(scheme: scheme.rawValue, parameters: all).fieldValue()
    }
}

extension Advice {
    /// AM's challenge and, for a client with an access token, the standard's behind it (RFC 9470 §3). They are one
    /// field: some of AM's clients read the last field only, and others look at its beginning.
    ///
    /// - Parameters:
    ///   - server: where clients find the server.
    ///   - realm: the realm.
    ///   - scheme: by which scheme the client's token came.
    ///   - acrValues: what a new token must be asked for with; empty where that would not help.
    /// - Returns: the value of `WWW-Authenticate`.
    /// - Throws: ``WireError`` when a value cannot stand in a challenge.
    package func challenges(
        server: String, realm: String, scheme: TokenScheme, acrValues: [String]
    ) throws(WireError) -> String {
        let challenge = try challengeFieldValue(server: server, realm: realm)
        guard !acrValues.isEmpty else { return challenge }
        let standard = TokenChallenge(
            scheme, error: InsufficientAuthentication.errorCode,
            parameters: [.init(name: "acr_values", value: acrValues.joined(separator: " "))])
        return challenge + "," + (try standard.fieldValue())
    }
}

extension HTTPFields {
    /// Gives the client the nonce for its next proof, where there is one. No cache may keep the reply then, whatever a
    /// service says of its own: a copy would give the client an old nonce (RFC 9449 §8.2).
    package mutating func give(nonce: String?) {
        guard let nonce else { return }
        self[.dpopNonce] = nonce
        for name in Set(map(\.name)) where name.isForSomeCaches { self[name] = nil }
        let isKept = self[values: .cacheControl].allSatisfy { !$0.lowercased().contains("no-store") }
        if isKept { self[.cacheControl] = "no-store" }
    }

    /// The nonce that a server gives for the next proof; `nil` when there is none, several, or one that no proof can
    /// have. A server refuses a proof with such a one without giving another, so whoever changes one reply would spoil
    /// every proof after it.
    package var givenNonce: String? {
        let values = self[values: .dpopNonce]
        guard values.count == 1, let nonce = values.first, Self.isNonce(nonce) else { return nil }
        return nonce
    }

    /// How many bytes a nonce may have.
    private static let nonceLimit = 512

    /// `1*NQCHAR` (RFC 9449 §8.1).
    private static func isNonce(_ text: String) -> Bool {
        (1...nonceLimit).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
    }
}

extension HTTPField.Name {
    /// Whether some caches obey the field and not `Cache-Control`: those that are named for them (RFC 9213 §2.1), and
    /// older ones of single makes.
    fileprivate var isForSomeCaches: Bool {
        let name = canonicalName
        return name.hasSuffix("-cache-control")
            || ["surrogate-control", "edge-control", "x-accel-expires"].contains(name)
    }
}
