import AssentCore
import Foundation

/// One authorization request (RFC 6749 §4.1.1 with PKCE, RFC 7636) and the only place where its answer is checked.
struct AuthorizationAttempt: Sendable {
    /// Where to send the user agent, or ourselves with a session.
    let url: String

    /// What the ID token must repeat; `nil` when none was asked for.
    let nonce: String?

    /// The PKCE verifier: 256 bits.
    let verifier: Secret

    /// Where the answer comes to.
    let redirectURI: String

    /// The `max_age` that is asked for, in seconds.
    let maxAge: TimeInterval?

    /// Who asks.
    let client: TokenClient

    private let state: String
    private let issuer: String
    private let needsIssuer: Bool

    /// A request. Its answer comes to `redirectURI`, or to the configuration's; `parameters` replace the
    /// configuration's of the same name, and never ours. With `key` the code is good only with that key's proof (RFC
    /// 9449 §10).
    init(
        _ configuration: TokenConfiguration, _ metadata: ProviderMetadata, client: TokenClient,
        redirectURI: String? = nil, parameters: [FormItems.Item] = [], key: KeyBinding? = nil,
        random: any RandomSource
    ) {
        self.client = client
        let verifier = random.token()
        state = random.token()
        nonce = configuration.scopes.contains("openid") ? random.token() : nil
        self.verifier = Secret(verifier)
        issuer = metadata.issuer
        self.redirectURI = redirectURI ?? configuration.redirectURI
        needsIssuer = metadata.sendsIssuer
        var items: [(String, String)] = [
            ("response_type", "code"), ("client_id", client.id), ("redirect_uri", self.redirectURI),
            ("scope", configuration.scopes.joined(separator: " ")), ("state", state),
            ("code_challenge", Base64URL.encode(SHA2.sha256(verifier.utf8))), ("code_challenge_method", "S256"),
        ]
        if let nonce { items.append(("nonce", nonce)) }
        if let key { items.append(("dpop_jkt", key.thumbprint)) }
        for item in parameters + configuration.authorizationParameters
        where !items.contains(where: { $0.0 == item.name }) { items.append((item.name, item.value)) }
        maxAge = items.first { $0.0 == "max_age" }.flatMap { TimeInterval($0.1) }
        url = items.reduce(metadata.authorizationEndpoint) { URLText.appending($1.0, $1.1, to: $0) }
    }

    /// Whether a redirect is the answer to this request, good or bad: it comes to the redirect URI and has this
    /// request's `state`, once.
    func isAnswer(_ location: String) -> Bool {
        guard let query = try? query(of: location), let answer = try? FormEncoding.parse(query),
            let state = answer["state"]
        else { return false }
        return ConstantTime.equal(state, self.state)
    }

    /// Whether a URL names this request, as that of a page from which the user comes back to it.
    func isNamed(in location: String) -> Bool { location.contains(state) }

    /// The code that the redirect carries.
    ///
    /// - Throws: ``TokenError``: `unexpectedRedirect` when it does not begin with the redirect URI exactly;
    ///   `foreignAnswer` when `state` or `iss` (RFC 9207) are not this request's; `authorizationRefused` with the
    ///   server's `error`; `malformedReply` when a parameter occurs twice or there is no code.
    func code(fromRedirect location: String) throws(TokenError) -> Secret {
        let query = try query(of: location)
        let answer: FormItems
        do throws(WireError) {
            answer = try FormEncoding.parse(query)
            for name in ["state", "iss", "code", "error"] { _ = try answer.single(name) }
        } catch {
            throw TokenError(
                .malformedReply, "The answer to the authorization request cannot be read: \(error.detail).")
        }
        guard let state = answer["state"], ConstantTime.equal(state, self.state) else {
            throw TokenError(.foreignAnswer, "The answer has another request's state.")
        }
        switch answer["iss"] {
        case let iss?:
            guard iss.utf8.elementsEqual(issuer.utf8) else {
                throw TokenError(.foreignAnswer, "The answer names another server as its issuer (iss).")
            }
        case nil:
            guard !needsIssuer else {
                throw TokenError(
                    .foreignAnswer, "The answer does not name its issuer (iss), although this provider always does.")
            }
        }
        if let error = answer["error"] {
            let shown = error.utf8.allSatisfy(\.isASCIIVisible) ? String(error.prefix(64)) : "unknown"
            throw TokenError(.authorizationRefused, "The provider refused to sign in.", oauthError: shown)
        }
        guard let code = answer["code"], !code.isEmpty else {
            throw TokenError(.malformedReply, "The answer to the authorization request has no code.")
        }
        return Secret(code)
    }

    private func query(of location: String) throws(TokenError) -> String {
        guard location.utf8.starts(with: redirectURI.utf8) else {
            throw TokenError(.unexpectedRedirect, "The provider leads to somewhere other than the redirect URI.")
        }
        var rest = Array(location.utf8.dropFirst(redirectURI.utf8.count).prefix { $0 != UInt8(ascii: "#") })
        let hasQuery = redirectURI.utf8.contains(UInt8(ascii: "?"))
        // AM writes a slash behind a redirect URI that is an origin only.
        if redirectURI.utf8.count(where: { $0 == UInt8(ascii: "/") }) == 2, !hasQuery, rest.first == UInt8(ascii: "/") {
            rest.removeFirst()
        }
        guard rest.first == UInt8(ascii: hasQuery ? "&" : "?") else {
            throw TokenError(.unexpectedRedirect, "The provider leads to somewhere other than the redirect URI.")
        }
        return String(decoding: rest.dropFirst(), as: UTF8.self)
    }
}
