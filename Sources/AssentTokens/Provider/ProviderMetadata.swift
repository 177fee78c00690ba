public import AssentCore

/// What an authorization server says of itself (OpenID Connect Discovery §3, RFC 8414 §2). Endpoints are used exactly
/// as they are written.
public struct ProviderMetadata: Hashable, Sendable {
    /// The issuer; the one that was configured.
    public let issuer: String

    /// `authorization_endpoint`
    public let authorizationEndpoint: String

    /// `token_endpoint`
    public let tokenEndpoint: String

    /// `jwks_uri`
    public let keySetURI: String?

    /// `userinfo_endpoint`
    public let userInfoEndpoint: String?

    /// `revocation_endpoint` (RFC 7009)
    public let revocationEndpoint: String?

    /// `ping_end_idp_session_endpoint` when there is one, else `end_session_endpoint`
    public let endSessionEndpoint: String?

    /// `registration_endpoint` (RFC 7591)
    public let registrationEndpoint: String?

    /// `assent_web_link_endpoint`, where the server signs browsers in for apps
    public let webLinkEndpoint: String?

    /// Whether answers to authorization requests always carry `iss` (RFC 9207 §3).
    public let sendsIssuer: Bool

    /// Whether a repeated refresh with the same `attempt_id` gets the same successor: the Assent server's promise.
    public let knowsRefreshAttempts: Bool

    static func missing(_ name: String) -> TokenError {
        TokenError(.unusableEndpoint, "The provider's description of itself has no \(name).")
    }

    /// Reads a discovery document.
    ///
    /// - Throws: ``TokenError``: `issuerMismatch` unless the issuer is byte for byte `issuer`; `unusableEndpoint` for
    ///   an endpoint that is missing, is not a URL, or is neither https nor on this machine; `malformedReply` when a
    ///   member has a wrong type or PKCE with S256 is not supported.
    public init(_ json: JSONObject, issuer: String) throws(TokenError) {
        guard let named = json["issuer"]?.string, named.utf8.elementsEqual(issuer.utf8) else {
            throw TokenError(.issuerMismatch, "The provider's description of itself names another issuer, or none.")
        }
        func endpoint(_ name: String) throws(TokenError) -> String? {
            guard let value = json[name], value != .null else { return nil }
            guard let url = value.string else {
                throw TokenError(.malformedReply, "The provider's \(name) is not a text.")
            }
            try EndpointRule.check(url, as: "The provider's \(name)")
            return url
        }
        func required(_ name: String) throws(TokenError) -> String {
            guard let url = try endpoint(name) else { throw Self.missing(name) }
            return url
        }
        self.issuer = issuer
        authorizationEndpoint = try required("authorization_endpoint")
        tokenEndpoint = try required("token_endpoint")
        keySetURI = try endpoint("jwks_uri")
        userInfoEndpoint = try endpoint("userinfo_endpoint")
        revocationEndpoint = try endpoint("revocation_endpoint")
        registrationEndpoint = try endpoint("registration_endpoint")
        webLinkEndpoint = try endpoint("assent_web_link_endpoint")
        let ping = try endpoint("ping_end_idp_session_endpoint")
        let standard = try endpoint("end_session_endpoint")
        endSessionEndpoint = ping ?? standard
        sendsIssuer = json["authorization_response_iss_parameter_supported"]?.bool ?? false
        knowsRefreshAttempts = json["assent_refresh_attempt_supported"]?.bool ?? false
        if let methods = json["code_challenge_methods_supported"] {
            guard methods.strings?.contains("S256") == true else {
                throw TokenError(
                    .malformedReply, "The provider does not support PKCE with S256.",
                    suggestion: "Ask its operator to allow it (RFC 7636).")
            }
        }
    }
}
