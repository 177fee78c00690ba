package import AssentCore
import AssentStore

/// Says what tokens are (RFC 7662), to those who may know.
package struct TokenIntrospection: Sendable {
    private let provider: OAuthProvider

    /// The introspection endpoint of a provider.
    package init(_ provider: OAuthProvider) { self.provider = provider }

    /// The introspection endpoint (RFC 7662): what a token is, told to the client it was issued to, to a resource
    /// server that it is meant for, and to a client that may introspect all. To anybody else, and for whatever does not
    /// count, the answer is `{"active": false}`.
    ///
    /// - Parameters:
    ///   - parameters: the form.
    ///   - authorization: the field `Authorization`.
    ///   - isSealed: whether the request has come sealed. How the token that it asks about has come, nobody knows here.
    /// - Returns: what the token is.
    /// - Throws: ``OAuthError`` `invalid_client` also for a public client: a token must not be tried out by just
    ///   anybody.
    package func answer(
        _ parameters: OAuthParameters, authorization: String? = nil, isSealed: Bool = false
    ) async throws -> JSONValue {
        let caller = try await provider.clients.client(
            of: parameters, authorization: authorization, at: .introspection, isSealed: isSealed)
        let client = caller.client
        guard client.kind != .public else { throw caller.failure }
        return try await caller.answering {
            let token = Secret(try parameters.required("token"))
            let answer =
                if token.reveal().contains(".") {
                    try await access(token, for: client)
                } else {
                    try await refresh(token, for: client)
                }
            return answer.map(JSONValue.object) ?? ["active": false]
        }
    }

    private func access(_ token: Secret, for client: OAuthClient) async throws -> JSONObject? {
        // A token that is bound to a key is introspected by a resource server, which checks the key itself.
        guard let claims = try await provider.accessClaims(token),
            let access = try await provider.access(token: token, keyThumbprint: claims.sender?.keyThumbprint),
            client.introspectsAll || access.clientID == client.id || access.audience.contains(client.id)
        else { return nil }
        var object = describe(access.owner, clientID: access.clientID, scopes: access.scopes)
        object.add(access.kind, access.app, version: access.version, platform: access.platform)
        object["token_type"] = .string(TokenScheme(boundTo: access.sender?.keyThumbprint).rawValue)
        object["exp"] = .integer(access.expiresAt)
        object["iat"] = .integer(access.issuedAt)
        object["jti"] = .string(access.tokenID)
        object["aud"] =
            access.audience.count == 1
            ? access.audience.first.map(JSONValue.string) : .array(access.audience.map(JSONValue.string))
        object["acr"] = access.acr.map(JSONValue.string)
        if let amr = access.owner?.amr, !amr.isEmpty { object["amr"] = .array(amr.map(JSONValue.string)) }
        object["auth_time"] = (access.owner?.authTime).map(JSONValue.integer)
        if let thumbprint = access.sender?.keyThumbprint { object["cnf"] = ["jkt": .string(thumbprint)] }
        return object
    }

    private func refresh(_ token: Secret, for client: OAuthClient) async throws -> JSONObject? {
        let row = try await context.database.run(
            .read(
                """
                SELECT r.expires_at, r.issued_at, \(GrantRecord.columns)
                FROM \(GrantRecord.joined("refresh_tokens r JOIN grants g ON g.id = r.grant_id", at: now))
                WHERE r.id = \(TokenHash.of(token)) AND r.used_at IS NULL AND r.expires_at > \(now)
                    AND g.realm = \(configuration.realm) AND \(GrantRecord.isValid)
                """)
        ).first
        guard let row else { return nil }
        let grant = try GrantRecord(row)
        guard configuration.definition(of: grant.clientID) != nil,
            client.introspectsAll || grant.clientID == client.id,
            grant.refusalByFile(mayOutlive: configuration.mayOutlive(grant.clientID)) == nil,
            configuration.isServed(grant.clientID, version: grant.version)
        else { return nil }
        var object = describe(grant.owner, clientID: grant.clientID, scopes: grant.scopes)
        let app = configuration.client(grant.clientID) == nil ? OAuthApp.id(ofInstance: grant.clientID) : nil
        let kind = grant.kind(isOfInstance: app != nil)
        object.add(kind, app, version: grant.version, platform: grant.platform)
        object["exp"] = .integer(try row.integer("expires_at"))
        object["iat"] = .integer(try row.integer("issued_at"))
        return object
    }

    private func describe(_ owner: ResourceOwner?, clientID: String, scopes: [String]) -> JSONObject {
        var object = JSONObject()
        object["active"] = true
        object["scope"] = .string(scopes.joined(separator: " "))
        object["realm"] = .string(configuration.realm)
        object["client_id"] = .string(clientID)
        object["user_id"] = (owner?.user.username).map(JSONValue.string)
        object["username"] = (owner?.user.username).map(JSONValue.string)
        object["sub"] = .string(owner?.user.id ?? clientID)
        object["auth_level"] = (owner?.authLevel).map { .integer(Int64($0)) }
        object["iss"] = .string(configuration.issuer)
        return object
    }

    private var context: EngineContext { provider.context }
    private var configuration: OAuthProviderConfiguration { provider.configuration }
    private var now: Int64 { provider.now }
}

extension JSONObject {
    /// Adds for whom a token is, and of which installation, in its own words.
    fileprivate mutating func add(_ kind: CallerKind, _ app: String?, version: String?, platform: String?) {
        self["assent_kind"] = .string(kind.rawValue)
        self["app_identifier"] = app.map(JSONValue.string)
        self["app_version"] = version.map(JSONValue.string)
        self["app_platform"] = platform.map(JSONValue.string)
    }
}
