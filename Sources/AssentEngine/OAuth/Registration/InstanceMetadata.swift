package import AssentCore
import AssentJOSE

/// What an instance of an app has registered (RFC 7591 §2).
package struct InstanceMetadata: Sendable, Hashable {
    /// The app's id.
    let app: String

    /// Its key.
    let key: JWK

    /// Where its codes may be sent.
    var redirectURIs: [String]

    /// What it may do at the token endpoint.
    var grantTypes: [OAuthClient.GrantType]

    /// What it may ask for.
    var scopes: [String]

    /// Whether it gets no tokens without a proof.
    var requiresProof: Bool

    /// What it calls itself. Nothing but the operator's list shows it.
    let name: String?

    /// Which version of the app it says that it is.
    let version: String?

    /// On which platform it says that it runs.
    let platform: String?

    /// What its device is called. Nothing but the operator's list shows it.
    let deviceName: String?

    /// The software statement that it has come with.
    let statement: String?

    /// The thumbprint of its key.
    package var keyThumbprint: String { key.thumbprint }

    /// How many of each list a request may name.
    private static let limit = 64

    /// What nobody may ask for: what has the server fetch something, secrets, and what the server itself says.
    private static let refused = [
        "jwks_uri", "request_uris", "sector_identifier_uri", "client_secret", "client_secret_expires_at",
        "client_id_issued_at", "registration_client_uri", "registration_access_token",
    ]

    /// What a software statement may say in place of the request.
    private static let stated = [
        "jwks", "redirect_uris", "scope", "grant_types", "response_types", "token_endpoint_auth_method",
        "dpop_bound_access_tokens", "client_name", "software_version",
        "assent_platform",
    ]

    /// The app that a request is about.
    ///
    /// - Throws: ``OAuthError`` `invalid_client_metadata` when the file has no such app.
    package static func app(
        of body: JSONObject, in configuration: OAuthProviderConfiguration
    ) throws(OAuthError) -> OAuthApp {
        guard let app = body["software_id"]?.string.flatMap({ configuration.apps[$0] }) else {
            throw .clientMetadata("software_id is not the id of an app here.")
        }
        return app
    }

    /// Reads a request.
    ///
    /// - Parameters:
    ///   - body: its members. One that is `null` is missing (RFC 7592 §2.2).
    ///   - app: the app that it names.
    ///   - id: the client id of an instance that changes what it has registered, which the request repeats (RFC 7592
    ///     §2.2); `nil` for one that registers.
    ///   - clock: where the time comes from.
    /// - Throws: ``OAuthError`` `invalid_client_metadata`, `invalid_redirect_uri`, `invalid_software_statement`,
    ///   `unapproved_software_statement`.
    package init(
        _ body: JSONObject, of app: OAuthApp, as id: String? = nil, clock: any WallClock
    ) throws(OAuthError) {
        var said = JSONObject(body.members.filter { $0.value != .null })
        guard said["client_id"] == id.map(JSONValue.string) else {
            throw .clientMetadata(id == nil ? "client_id cannot be chosen." : "client_id must be the one of the path.")
        }
        guard said["software_id"]?.string == app.id else {
            throw .clientMetadata("software_id must be the id of the app.")
        }
        try Self.refuse(in: said)
        let statement = try Self.text(said, "software_statement", limit: SoftwareStatements.limit)
        if let statement {
            guard let statements = app.statements else {
                throw OAuthError(.unapprovedSoftwareStatement, "Nobody signs software statements for this app.")
            }
            let all = try statements.claims(of: statement, app: app.id, clock: clock)
            let claims = JSONObject(all.members.filter { $0.value != .null })
            try Self.refuse(in: claims)
            for name in Self.stated { if let value = claims[name] { said[name] = value } }
        } else if app.admission == .statement {
            throw OAuthError(.invalidSoftwareStatement, "The app's instances register with a software statement.")
        }
        self.app = app.id
        self.statement = statement
        key = try Self.key(said)
        redirectURIs = try Self.redirectURIs(said, of: app.client)
        grantTypes = try Self.grantTypes(said, of: app.client)
        scopes = try Self.scopes(said, of: app.client)
        requiresProof = try Self.requiresProof(said, of: app.client)
        name = try Self.line(said, "client_name", limit: 200)
        version = try Self.line(said, "software_version", limit: AppVersions.nameLimit)
        platform = try Self.line(said, "assent_platform", limit: 64)
        deviceName = try Self.line(said, "assent_device_name", limit: 200)
        let responses = said["response_types"].map { $0.strings ?? [""] }
        guard said["token_endpoint_auth_method"].map({ $0.string == "private_key_jwt" }) ?? true else {
            throw .clientMetadata("token_endpoint_auth_method can only be private_key_jwt.")
        }
        guard responses.map({ $0 == responseTypes }) ?? true else {
            throw .clientMetadata("response_types is [\"code\"] with the grant type authorization_code, else empty.")
        }
    }

    private var responseTypes: [String] { grantTypes.contains(.authorizationCode) ? ["code"] : [] }

    /// What there is still of it after its app was narrowed.
    func narrowed(to app: OAuthApp) -> InstanceMetadata {
        var left = self
        left.redirectURIs = redirectURIs.filter { Self.has($0, in: app.client.redirectURIs) }
        left.grantTypes = grantTypes.filter(app.client.grantTypes.contains)
        left.scopes = scopes.filter(app.client.scopes.contains)
        left.requiresProof = requiresProof || app.client.requiresProof
        return left
    }

    private static func refuse(in said: JSONObject) throws(OAuthError) {
        for name in refused where said[name] != nil { throw .clientMetadata("\(name) cannot be registered.") }
    }

    private static func key(_ said: JSONObject) throws(OAuthError) -> JWK {
        do throws(JOSEError) {
            let set = try ClientKeys.listed(said["jwks"] ?? .null, for: Set(ClientKeys.usualAlgorithms))
            guard set.keys.count == 1, let key = set.keys.first else {
                throw JOSEError(.malformed, "must have exactly one key")
            }
            guard (1...256).contains(key.keyID?.utf8.count ?? 1) else {
                throw JOSEError(.malformed, "has a kid that is empty or too long")
            }
            return key
        } catch {
            throw .clientMetadata("jwks \(error.detail)")
        }
    }

    /// Whether a list has a URI byte for byte: Unicode has other spellings of what Swift takes for equal.
    private static func has(_ uri: String, in list: [String]) -> Bool {
        list.contains { $0.utf8.elementsEqual(uri.utf8) }
    }

    private static func redirectURIs(_ said: JSONObject, of client: OAuthClient) throws(OAuthError) -> [String] {
        guard let value = said["redirect_uris"] else { return client.redirectURIs }
        guard let uris = value.strings, uris.count <= limit, Set(uris).count == uris.count,
            uris.allSatisfy({ Self.has($0, in: client.redirectURIs) })
        else { throw OAuthError(.invalidRedirectURI, "redirect_uris must be some of the app's, written as these are.") }
        return uris
    }

    private static func grantTypes(
        _ said: JSONObject, of client: OAuthClient
    ) throws(OAuthError) -> [OAuthClient.GrantType] {
        let all = OAuthClient.GrantType.allCases.filter(client.grantTypes.contains)
        guard let value = said["grant_types"] else { return all }
        guard let names = value.strings, !names.isEmpty, Set(names).isSubset(of: all.map(\.rawValue)) else {
            throw .clientMetadata("grant_types must be some of the app's: \(all.map(\.rawValue)).")
        }
        return all.filter { names.contains($0.rawValue) }
    }

    private static func scopes(_ said: JSONObject, of client: OAuthClient) throws(OAuthError) -> [String] {
        guard let text = try text(said, "scope", limit: limit * 129) else { return client.scopes }
        let asked = text.split(separator: " ").map(String.init)
        guard !asked.isEmpty, asked.allSatisfy(client.scopes.contains) else {
            throw .clientMetadata("scope must have some of the app's scopes, and no other.")
        }
        return client.scopes.filter(asked.contains)
    }

    private static func requiresProof(_ said: JSONObject, of client: OAuthClient) throws(OAuthError) -> Bool {
        guard let value = said["dpop_bound_access_tokens"] else { return client.requiresProof }
        guard let flag = value.bool, flag || !client.requiresProof else {
            throw .clientMetadata("dpop_bound_access_tokens must be a truth value, and true where the app says so.")
        }
        return flag
    }

    private static func text(_ said: JSONObject, _ name: String, limit: Int) throws(OAuthError) -> String? {
        guard let value = said[name] else { return nil }
        guard let text = value.string, text.utf8.count <= limit else {
            throw .clientMetadata("\(name) must be a text of at most \(limit) bytes.")
        }
        return text
    }

    private static func line(_ said: JSONObject, _ name: String, limit: Int) throws(OAuthError) -> String? {
        guard let text = try text(said, name, limit: limit) else { return nil }
        guard !text.isEmpty, (try? DisplayText(text)) != nil else {
            throw .clientMetadata("\(name) must be a text that can be shown in a line.")
        }
        return text
    }
}

// MARK: - As it is stored and told

extension InstanceMetadata {
    /// The members as they are stored, and told to the instance (RFC 7591 §3.2.1).
    package var members: [JSONObject.Member] {
        JSONObject(omittingNil: [
            "software_id": .string(app), "software_version": version.map(JSONValue.string),
            "jwks": ["keys": [key.json]],
            "redirect_uris": .array(redirectURIs.map(JSONValue.string)),
            "grant_types": .array(grantTypes.map { .string($0.rawValue) }),
            "response_types": .array(responseTypes.map(JSONValue.string)),
            "scope": .string(scopes.joined(separator: " ")),
            "token_endpoint_auth_method": "private_key_jwt",
            "dpop_bound_access_tokens": .bool(requiresProof),
            "client_name": name.map(JSONValue.string),
            "assent_platform": platform.map(JSONValue.string),
            "assent_device_name": deviceName.map(JSONValue.string),
            "software_statement": statement.map(JSONValue.string),
        ]).members
    }

    /// Reads what was stored; `nil` when that is damaged.
    init?(stored text: String) {
        guard let json = try? JSONValue.parse(Array(text.utf8)), let app = json["software_id"]?.string,
            let entry = json["jwks"]?["keys"]?.array?.first, let key = try? JWK(entry),
            let redirectURIs = json["redirect_uris"]?.strings, let types = json["grant_types"]?.strings,
            let scope = json["scope"]?.string, let requiresProof = json["dpop_bound_access_tokens"]?.bool
        else { return nil }
        self.app = app
        self.key = key
        self.redirectURIs = redirectURIs
        self.requiresProof = requiresProof
        grantTypes = types.compactMap(OAuthClient.GrantType.init)
        scopes = scope.split(separator: " ").map(String.init)
        name = json["client_name"]?.string
        version = json["software_version"]?.string
        platform = json["assent_platform"]?.string
        deviceName = json["assent_device_name"]?.string
        statement = json["software_statement"]?.string
    }
}

extension OAuthError {
    /// What an instance wants to register is not possible (RFC 7591 §3.2.2).
    static func clientMetadata(_ detail: String) -> OAuthError { OAuthError(.invalidClientMetadata, detail) }
}
