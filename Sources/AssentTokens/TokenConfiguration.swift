public import AssentCore
public import Foundation
package import HTTPTypes

/// The authorization server and this client's registration there.
public struct TokenConfiguration: Sendable {
    /// The issuer exactly as the server calls itself.
    public let issuer: String

    /// The client's id; with ``registration`` the app's. The client is public unless ``clientAuthentication`` or
    /// ``registration`` says otherwise.
    public let clientID: String

    /// The redirect URI exactly as it is registered.
    public let redirectURI: String

    /// What access is asked for; with `openid` there is an ID token.
    public let scopes: [String]

    /// The name of AM's session cookie, which is the name of the header that carries the session.
    public let sessionCookieName: String

    /// The header field of this name.
    package let sessionField: HTTPField.Name

    /// Signature algorithms that an ID token may have. HS256 and `none` are never accepted.
    public var idTokenAlgorithms: Set<SignatureAlgorithm> = [.es256, .es384, .es512, .rs256, .ps256, .edDSA]

    /// Audiences that an ID token may name besides this client, which `azp` must then name. A token for anybody else as
    /// well is refused (OpenID Connect Core §3.1.3.7, rule 3).
    public var trustedAudiences: Set<String> = []

    /// More items of the authorization request, for example `acr_values`.
    public var authorizationParameters: [FormItems.Item] = []

    /// How many seconds before its end an access token is renewed. Keep it well below the life of the server's tokens:
    /// one that lives no longer than this is renewed whenever somebody asks for a token.
    public var renewBefore: TimeInterval = 60

    /// How many seconds a renewal, a sign-in or a sign-out waits for another task or process that is at it. Then it
    /// fails with code `busy`, and nothing is sent.
    public var patience: TimeInterval = 120

    /// Whether new tokens are bound to a key (RFC 9449). Off by default.
    public var dpop = DPoPConfiguration.off

    /// How the client proves that it is this client. By default it does not: it is public.
    public var clientAuthentication = ClientAuthentication.none

    /// How this installation registers as a client of its own. By default it does not: ``clientID`` is the client.
    public var registration: RegistrationConfiguration?

    /// Whether tokens are renewed at all: those of a login with a PIN are not.
    package var renews = true

    /// How many seconds clocks may differ.
    public var leeway: TimeInterval = 30

    /// Bounds of each exchange.
    public var limits = HTTPLimits(replyBytes: 1 << 20)

    /// A configuration.
    ///
    /// - Throws: ``TokenError`` with code `invalidConfiguration` when the issuer is not an `https` URL (or `http` to
    ///   this machine) without query and fragment, the redirect URI has a fragment or no scheme, or a part is empty or
    ///   has characters that it cannot have.
    public init(
        issuer: String, clientID: String, redirectURI: String, scopes: [String] = ["openid"],
        sessionCookieName: String = WireName.sessionCookie
    ) throws(TokenError) {
        try EndpointRule.check(issuer, as: "The issuer", .invalidConfiguration)
        guard !issuer.utf8.contains(UInt8(ascii: "?")) else {
            throw TokenError(.invalidConfiguration, "The issuer has a query.")
        }
        let isPlain = { (text: String) in !text.isEmpty && text.utf8.allSatisfy(\.isASCIIVisible) }
        guard isPlain(clientID) else {
            throw TokenError(.invalidConfiguration, "The client's id is empty, or has characters that it cannot have.")
        }
        guard isPlain(redirectURI), !redirectURI.utf8.contains(UInt8(ascii: "#")), redirectURI.contains(":") else {
            throw TokenError(
                .invalidConfiguration,
                "The redirect URI has no scheme, has a fragment, or has characters that it cannot have.")
        }
        guard scopes.allSatisfy(isPlain), let sessionField = HTTPField.Name(sessionCookieName) else {
            throw TokenError(
                .invalidConfiguration, "A scope or the name of the session cookie has characters that it cannot have.")
        }
        self.issuer = issuer
        self.clientID = clientID
        self.redirectURI = redirectURI
        self.scopes = scopes
        self.sessionCookieName = sessionCookieName
        self.sessionField = sessionField
    }

    /// What an installation registers: the user's scopes, then its own.
    var registeredScopes: [String] {
        scopes + (registration?.deviceScopes ?? []).filter { !scopes.contains($0) }
    }

    var discoveryURL: String {
        (issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer) + "/.well-known/openid-configuration"
    }
}

/// What a URL must be before anything is sent to it.
enum EndpointRule {
    static func check(_ url: String, as name: String, _ code: TokenError.Code = .unusableEndpoint) throws(TokenError) {
        let origin: Origin
        do throws(WireError) {
            origin = try Origin(url)
        } catch {
            throw TokenError(code, "\(name) cannot be used: \(error.detail).")
        }
        guard origin.isSecure || origin.host.isLoopback else {
            throw TokenError(code, "\(name) is neither https nor on this machine.")
        }
        guard !url.utf8.contains(UInt8(ascii: "#")) else { throw TokenError(code, "\(name) has a fragment.") }
    }
}
