import AssentCore
import AssentJOSE
import Foundation
import Logging

/// Finds out which client a request to the token, revocation or introspection endpoint comes from.
package struct ClientAuthenticator: Sendable {
    private let context: EngineContext
    private let configuration: OAuthProviderConfiguration
    private let keySets: (any ClientKeySets)?

    init(_ context: EngineContext, _ configuration: OAuthProviderConfiguration, keySets: (any ClientKeySets)?) {
        self.context = context
        self.configuration = configuration
        self.keySets = keySets
    }

    /// The client that a request comes from: `none`, `client_secret_post`, `client_secret_basic` or `private_key_jwt`,
    /// never two of them (RFC 6749 §2.3, RFC 7523 §2.2).
    ///
    /// - Parameters:
    ///   - parameters: the form.
    ///   - authorization: the value of the `Authorization` header, if there is one.
    ///   - endpoint: where the request has come to.
    ///   - isSealed: whether it has come sealed (docs/payload-encryption.md).
    /// - Returns: the client. An assertion of its key is verified and not spent yet.
    /// - Throws: ``OAuthError`` `invalid_client`, which wants other credentials where the header was used,
    ///   `invalid_request`, or `temporarily_unavailable` when the client's keys cannot be fetched.
    package func client(
        of parameters: OAuthParameters, authorization: String?, at endpoint: ClientEndpoint, isSealed: Bool = false
    ) async throws(OAuthError) -> AuthenticatedClient {
        let type = parameters["client_assertion_type"]
        if let assertion = parameters["client_assertion"] {
            guard authorization == nil, parameters["client_secret"] == nil else {
                throw .invalidRequest("The client authenticates in more than one way.")
            }
            guard let type, type.utf8.elementsEqual(ClientAssertion.parameterType.utf8) else { throw endpoint.failure }
            return try await client(
                asserting: assertion, named: parameters["client_id"], at: endpoint, isSealed: isSealed)
        }
        guard type == nil else { throw endpoint.failure }
        do {
            let client = try client(by: parameters, authorization: authorization)
            return AuthenticatedClient(client, of: configuration.realm, at: endpoint, isSealed: isSealed, context)
        } catch {
            throw error.code == .invalidClient && error.wanted == nil ? endpoint.failure : error
        }
    }

    /// The client that has signed an assertion.
    private func client(
        asserting text: String, named: String?, at endpoint: ClientEndpoint, isSealed: Bool
    ) async throws(OAuthError) -> AuthenticatedClient {
        let (message, client, own): (UnverifiedJWS, OAuthClient, ClientKeys)
        do {
            (message, client, own) = try await asserted(text, named: named)
        } catch let error as JOSEError {
            throw refusal(error, at: endpoint)
        } catch {
            throw OAuthError(answering: error)
        }
        let keys = try await keySet(own, of: client, for: message)
        do {
            let assertion = try ClientAssertion(
                message, of: client.id, keys: keys, algorithms: own.algorithms,
                audiences: configuration.audiences(at: endpoint), clock: context.clock)
            return AuthenticatedClient(
                client, of: configuration.realm, at: endpoint, assertion: assertion, isSealed: isSealed, context)
        } catch {
            throw refusal(error, at: endpoint)
        }
    }

    /// The client of an id: one of the file, or an instance of an app, which is looked up in the database.
    ///
    /// - Throws: ``StoreError``.
    package func find(_ id: String) async throws -> OAuthClient? {
        try await ClientInstance.client(id, in: configuration, context)
    }

    /// Whom an assertion says that it comes from, with the keys that can show it.
    private func asserted(
        _ text: String, named: String?
    ) async throws -> (UnverifiedJWS, OAuthClient, ClientKeys) {
        let message = try UnverifiedJWS.parse(text, limit: OAuthParameters.valueLimit)
        let id = try ClientAssertion.subject(of: message)
        guard named.map({ $0.utf8.elementsEqual(id.utf8) }) ?? true,
            let client = try await find(id),
            case .keyed(let keys) = client.kind
        else { throw JOSEError(.noMatchingKey, "No client of this name has keys, or client_id is another one.") }
        // Nothing is fetched for an assertion that cannot be right.
        guard keys.algorithms.contains(message.algorithm) else { throw JOSEError(.algorithmNotAllowed) }
        return (message, client, keys)
    }

    private func keySet(
        _ keys: ClientKeys, of client: OAuthClient, for message: UnverifiedJWS
    ) async throws(OAuthError) -> JWKSet {
        switch keys.source {
        case .listed(let set): return set
        case .fetched(let url):
            do {
                guard let keySets else { throw EngineError.internalFailure("nothing fetches the keys of clients") }
                return try await keySets.keys(at: url, keyID: message.keyID, algorithm: message.algorithm)
            } catch {
                context.logger.warning(
                    "the keys of a client cannot be fetched, so that it cannot authenticate",
                    metadata: ["client": "\(client.id)", "url": "\(url)", "error": "\(error)"])
                throw OAuthError(.temporarilyUnavailable, "The client's keys cannot be fetched now.")
            }
        }
    }

    private func refusal(_ error: JOSEError, at endpoint: ClientEndpoint) -> OAuthError {
        context.logger.info(
            "a client assertion was refused",
            metadata: ["realm": "\(configuration.realm)", "reason": "\(error.code.rawValue): \(error.detail)"])
        return endpoint.failure
    }

    /// The client by its secret, or a public one by its name.
    private func client(by parameters: OAuthParameters, authorization: String?) throws(OAuthError) -> OAuthClient {
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
    ///
    /// The colon is looked for by its byte: a mark (an accent and the like) behind it makes one character of both, and
    /// a long row of marks is slow to compare.
    static func basicCredentials(_ header: String) -> (id: String, secret: Secret)? {
        let parts = header.split(separator: " ", omittingEmptySubsequences: true)
        guard header.utf8.count <= OAuthParameters.valueLimit, parts.count == 2, let scheme = parts.first,
            scheme.lowercased() == "basic", let encoded = parts.last, let data = Data(base64Encoded: String(encoded)),
            let text = String(validating: data, as: UTF8.self),
            let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")),
            let id = PercentEncoding.decode(text[..<colon], plusIsSpace: true),
            let secret = PercentEncoding.decode(text[text.utf8.index(after: colon)...], plusIsSpace: true)
        else { return nil }
        return (id, Secret(secret))
    }
}
