package import AssentCore
package import AssentJOSE

extension OAuthProvider {
    /// The public keys of ID tokens and access tokens, also those that the first token of a client will need.
    package func publishedKeys() async throws -> JWKSet {
        try await keys.published(
            idTokens: configuration.idTokenAlgorithms, accessTokens: configuration.accessTokenAlgorithms)
    }

    /// The provider's metadata (OpenID Connect Discovery 1.0 §3, RFC 8414 §2, RFC 9207 §3).
    ///
    /// `assent_refresh_attempt_supported` tells our own client that a refresh may be repeated with the same
    /// `attempt_id`.
    package func metadata() -> JSONValue {
        let base = configuration.endpointBase
        var scopes: [String] = []
        for client in configuration.definitions.sorted(by: { $0.id < $1.id }) {
            for scope in client.scopes where !scopes.contains(scope) { scopes.append(scope) }
        }
        let contexts = configuration.contexts.listed.map { JSONValue.string($0.value) }
        let secret = ["client_secret_post", "client_secret_basic"]
        let assertions = configuration.assertionAlgorithms
        let confidential = secret + (assertions.isEmpty ? [] : ["private_key_jwt"])
        let methods = JSONValue.array((["none"] + confidential).map(JSONValue.string))
        let checksSessions = configuration.clients.values.contains(where: \.checksSessions)
        let modes =
            ["query", AuthorizationRedirect.postedMode]
            + (checksSessions ? [AuthorizationRedirect.fragmentMode] : [])
        var metadata: JSONObject = [
            "issuer": .string(configuration.issuer),
            "authorization_endpoint": .string("\(base)/authorize"),
            "token_endpoint": .string(configuration.url(of: .token)),
            "userinfo_endpoint": .string("\(base)/userinfo"),
            "end_session_endpoint": .string("\(base)/connect/endSession"),
            "revocation_endpoint": .string(configuration.url(of: .revocation)),
            "introspection_endpoint": .string(configuration.url(of: .introspection)),
            "jwks_uri": .string("\(base)/connect/jwk_uri"),
            "scopes_supported": .array(scopes.map(JSONValue.string)),
            "claims_supported": .array((UserClaims.names + (contexts.isEmpty ? [] : ["acr"])).map(JSONValue.string)),
            "response_types_supported": checksSessions ? ["code", "none", "id_token"] : ["code", "none"],
            "response_modes_supported": .array(modes.map(JSONValue.string)),
            "grant_types_supported": .array(configuration.grantTypes.map { .string($0.rawValue) }),
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
            "token_endpoint_auth_methods_supported": methods,
            "revocation_endpoint_auth_methods_supported": methods,
            "introspection_endpoint_auth_methods_supported": .array(confidential.map(JSONValue.string)),
            "code_challenge_methods_supported": ["S256"],
            "dpop_signing_alg_values_supported": .array(SenderProofs.algorithms.map { .string($0.rawValue) }),
            "prompt_values_supported": ["none", "login", "select_account", "consent"],
            "authorization_response_iss_parameter_supported": true,
            "claims_parameter_supported": false,
            "request_parameter_supported": false,
            "request_uri_parameter_supported": false,
            "assent_refresh_attempt_supported": true,
        ]
        if !assertions.isEmpty {
            // Needed with private_key_jwt (RFC 8414 §2).
            for endpoint in ["token", "revocation", "introspection"] {
                metadata["\(endpoint)_endpoint_auth_signing_alg_values_supported"] =
                    .array(assertions.map { .string($0.rawValue) })
            }
        }
        for (name, path) in configuration.endpointsOfApps { metadata[name] = .string("\(base)/\(path)") }
        if !contexts.isEmpty { metadata["acr_values_supported"] = .array(contexts) }
        return .object(metadata)
    }
}

extension OAuthProviderConfiguration {
    /// Endpoints that only some realms have, since only their apps call them: their names in the metadata, and paths.
    fileprivate var endpointsOfApps: [(name: String, path: String)] {
        var endpoints: [(String, String)] = []
        if !apps.isEmpty { endpoints.append(("registration_endpoint", "register")) }
        if apps.values.contains(where: { !$0.webLinks.isEmpty }) {
            endpoints.append(("assent_web_link_endpoint", "web_link"))
        }
        if deviceConfigurations != nil { endpoints.append(("assent_device_config_endpoint", "device_config")) }
        if takesIntegrityReports { endpoints.append(("assent_reports_endpoint", "reports")) }
        return endpoints
    }
}
