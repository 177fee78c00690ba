import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// How a client hears what its access token, or the proof beside it, lacks (RFC 6750 §3, RFC 9449 §7.1). It is one
/// challenge without white space after its commas: some of AM's clients split a field there.
struct TokenChallenge: Sendable, Hashable {
    let scheme: TokenScheme

    /// The value of `error`; `nil` for a request that has no token.
    var error: String?

    /// Parameters behind `error`.
    var parameters: [Challenge.Parameter] = []

    /// What proofs may be signed with, as `algs` lists it.
    static let algorithms = SenderProofs.algorithms.map(\.rawValue).joined(separator: " ")

    init(_ scheme: TokenScheme, error: String? = nil, parameters: [Challenge.Parameter] = []) {
        self.scheme = scheme
        self.error = error
        self.parameters = parameters
    }

    /// The challenge that belongs to a refusal.
    init(_ refusal: TokenRefusal, scopes: [String] = []) {
        self.init(refusal.scheme, error: refusal.error)
        if refusal.reason == .insufficientScope, !scopes.isEmpty {
            parameters = [.init(name: "scope", value: scopes.joined(separator: " "))]
        }
    }

    /// The value of `WWW-Authenticate`, behind the realm where one is named.
    ///
    /// - Throws: `WireError` when a value has control characters.
    func fieldValue(realm: String? = nil) throws(WireError) -> String {
        var all: [Challenge.Parameter] = []
        if let realm { all.append(.init(name: "realm", value: realm)) }
        if let error { all.append(.init(name: "error", value: error)) }
        all += parameters
        if scheme == .dpop { all.append(.init(name: "algs", value: Self.algorithms)) }
        return try Challenge(scheme: scheme.rawValue, parameters: all).fieldValue()
    }
}

extension Response {
    /// Gives the client the nonce for its next proof, where there is one. No cache may keep the reply then, whatever a
    /// service says of its own: a copy would give the client an old nonce (RFC 9449 §8.2).
    mutating func give(nonce: String?) {
        guard let nonce else { return }
        headers[.dpopNonce] = nonce
        for name in Set(headers.map(\.name)) where name.isForSomeCaches { headers[name] = nil }
        let isKept = headers[values: .cacheControl].allSatisfy { !$0.lowercased().contains("no-store") }
        if isKept { headers[.cacheControl] = "no-store" }
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
