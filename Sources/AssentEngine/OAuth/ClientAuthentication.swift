import AssentCore
import Foundation

extension OAuthProvider {
    /// The client that a request to the token, revocation or introspection endpoint comes from: `none`,
    /// `client_secret_post` or `client_secret_basic`, never two of them (RFC 6749 §2.3).
    ///
    /// - Parameters:
    ///   - parameters: the form.
    ///   - authorization: the value of the `Authorization` header, if there is one.
    /// - Returns: the client.
    /// - Throws: ``OAuthError`` `invalid_client`, which wants other credentials where the header was used, or
    ///   `invalid_request`.
    package func client(
        authenticating parameters: OAuthParameters, authorization: String?
    ) throws(OAuthError) -> OAuthClient {
        guard parameters["client_assertion"] == nil, parameters["client_assertion_type"] == nil else {
            throw .invalidClient
        }
        let named = parameters["client_id"]
        let posted = parameters["client_secret"].map(Secret.init)
        guard let authorization else {
            guard let named else { throw .invalidClient }
            return try client(named, secret: posted, failure: .invalidClient)
        }
        let failure = OAuthError(.invalidClient, OAuthError.invalidClient.detail, wanted: .clientCredentials)
        guard let basic = Self.basicCredentials(authorization) else { throw failure }
        guard posted == nil, named == nil || named == basic.id else {
            throw .invalidRequest("The client authenticates in more than one way.")
        }
        return try client(basic.id, secret: basic.secret.isEmpty ? nil : basic.secret, failure: failure)
    }

    private func client(_ id: String, secret: Secret?, failure: OAuthError) throws(OAuthError) -> OAuthClient {
        guard let client = configuration.client(id) else { throw failure }
        switch (client.kind, secret) {
        case (.public, nil): return client
        case (.confidential, let secret?) where client.accepts(secret): return client
        default: throw failure
        }
    }

    /// The id and the secret of `Basic` credentials, each form-encoded before they were put together (RFC 6749 §2.3.1).
    static func basicCredentials(_ header: String) -> (id: String, secret: Secret)? {
        let parts = header.split(separator: " ", omittingEmptySubsequences: true)
        guard header.utf8.count <= OAuthParameters.valueLimit, parts.count == 2, let scheme = parts.first,
            scheme.lowercased() == "basic", let encoded = parts.last, let data = Data(base64Encoded: String(encoded)),
            let text = String(validating: data, as: UTF8.self), let colon = text.firstIndex(of: ":"),
            let id = PercentEncoding.decode(text[..<colon], plusIsSpace: true),
            let secret = PercentEncoding.decode(text[text.index(after: colon)...], plusIsSpace: true)
        else { return nil }
        return (id, Secret(secret))
    }
}
