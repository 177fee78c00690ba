import AssentConfiguration
import AssentCore
import AssentEngine
import AssentJOSE
import AssentSigningProtocol

/// Reads a client of a realm, or an app whose instances register as clients.
struct ClientLoader {
    let client: SettingsReader<Void>
    let paths: ConfigurationPaths

    /// A client that the file knows.
    func client(_ id: String) throws -> OAuthClient {
        var read = OAuthClient(
            id: id, kind: try ClientKindLoader(client: client, paths: paths).kind(),
            redirectURIs: client.strings("redirectURIs"), scopes: client.strings("scopes"))
        read.allowedOrigins = try WebOrigins.read(client)
        read.checksSessions = client.bool("sessionCheck", default: false)
        read.introspectsAll = client.bool("introspectsAll", default: false)
        try readRest(of: &read)
        client.finish()
        guard !read.grantTypes.contains(.jwtBearer) else {
            let type = OAuthClient.GrantType.jwtBearer.rawValue
            throw client.issue("grantTypes", "only installations of apps sign users in by devices: \(type)")
        }
        if let fault = read.validate().first { throw client.issue(nil, "client \(fault)") }
        return read
    }

    /// An app.
    func app(_ id: String) throws -> OAuthApp {
        // An instance has a key, as this stands for.
        var most = OAuthClient(
            id: id, kind: .keyed(ClientKeys(.listed(JWKSet([])))), redirectURIs: client.strings("redirectURIs"),
            scopes: client.strings("scopes"))
        try readRest(of: &most)
        var app = OAuthApp(most)
        guard let admission = Self.admissions[client.optionalString("registration") ?? "token"] else {
            throw client.issue("registration", "must be token (the default), statement or open")
        }
        app.admission = admission
        app.versions = try versions()
        app.minimumVersion = try minimumVersion()
        app.statements = try statements()
        app.maximumInstances = Int64(client.integer("maximumInstances", default: 100_000, in: 1...100_000_000))
        app.registrationsPerMinute = Int64(client.integer("registrationsPerMinute", default: 60, in: 1...1_000_000))
        app.registrationsPerAddress = Int64(client.integer("registrationsPerAddress", default: 10, in: 1...1_000_000))
        app.days = Int64(client.integer("registrationDays", default: 90, in: 1...3650))
        if let implicit = client.optionalMapping("implicit") {
            app.implicitScopes = implicit.strings("scopes")
            implicit.finish()
        }
        app.allowsStateless = client.bool("stateless", default: false)
        app.webLinks = client.strings("webLinks")
        client.finish()
        if let fault = app.validate().first { throw client.issue(nil, "app \(fault)") }
        return app
    }

    private static let admissions: [String: OAuthApp.Admission] = [
        "token": .token, "statement": .statement, "open": .open,
    ]

    /// `versions`: what the versions of an app may do. Which status others have is written down, since nobody could
    /// guess it.
    private func versions() throws -> AppVersions {
        guard client.has("versions") else { return AppVersions() }
        let listed = client.mappings("versions")
        var named: [String: AppVersions.Status] = [:]
        var sealing: [String: AppVersions.Sealing] = [:]
        var others: (status: AppVersions.Status, sealing: AppVersions.Sealing)?
        for (name, version) in listed {
            let status: AppVersions.Status = try Self.word(version.string("status"), "status", of: version)
            let sealed: AppVersions.Sealing = try Self.word(
                version.optionalString("payloadEncryption") ?? AppVersions.Sealing.allowed.rawValue,
                "payloadEncryption", of: version)
            version.finish()
            guard name != "default" else {
                others = (status, sealed)
                continue
            }
            guard AppVersions.isName(name) else {
                throw client.issue("versions", "a version has 1 to \(AppVersions.nameLimit) visible ASCII characters")
            }
            named[name] = status
            sealing[name] = sealed
        }
        guard let others else {
            throw client.issue("versions", "must say by default: {status: …} what all others may do")
        }
        guard named.count <= AppVersions.limit else {
            throw client.issue("versions", "an app may name \(AppVersions.limit) versions at most")
        }
        return AppVersions(
            named: named, others: others.status, sealing: sealing, othersSealing: others.sealing)
    }

    /// `minimumVersion`: what installations are told.
    private func minimumVersion() throws -> DottedVersion? {
        guard let text = client.optionalString("minimumVersion") else { return nil }
        guard let version = DottedVersion(text) else {
            throw client.issue("minimumVersion", "is a version of 1 to 8 numbers with dots, in quotes, as in \"3.1.0\"")
        }
        return version
    }

    /// One of the words that a key of a version can have.
    private static func word<Word: RawRepresentable & CaseIterable>(
        _ text: String, _ key: String, of version: SettingsReader<Void>
    ) throws -> Word where Word.RawValue == String {
        guard let word = Word(rawValue: text) else {
            let known = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw version.issue(key, "the \(key) of a version is one of \(known)")
        }
        return word
    }

    private func statements() throws -> SoftwareStatements? {
        guard let statements = client.optionalMapping("softwareStatements") else { return nil }
        let issuer = statements.string("issuer")
        let keys: JWKSet
        do {
            keys = try ClientKeys.listed(statements.json("jwks") ?? .null, for: Set(ClientKeys.usualAlgorithms))
        } catch {
            throw statements.issue("jwks", error.detail)
        }
        statements.finish()
        return SoftwareStatements(issuer: issuer, keys: keys)
    }

    /// What clients and apps have alike.
    private func readRest(of read: inout OAuthClient) throws {
        read.postLogoutRedirectURIs = client.strings("postLogoutRedirectURIs")
        read.defaultScopes = client.strings("defaultScopes")
        read.audience = client.strings("audience")
        if client.has("grantTypes") {
            read.grantTypes = Set(
                try client.strings("grantTypes").map { text in
                    guard let type = OAuthClient.GrantType(rawValue: text) else {
                        let known = OAuthClient.GrantType.allCases.map(\.rawValue).joined(separator: ", ")
                        throw client.issue("grantTypes", "unknown grant type \(text); known: \(known)")
                    }
                    return type
                })
        }
        try readTokens(of: &read)
        read.requiresProof = client.bool("dpopBound", default: false)
        read.requiresNonce = try Self.requiresNonce(client)
        read.consentImplied = client.bool("consentImplied", default: true)
        read.consentLifetime = Int64(client.integer("consentDays", default: 365, in: 1...3650)) * 86_400
        read.name = client.optionalString("name")
        if let name = read.name { try Self.check(name, of: client, "name") }
        let year = 366 * 86_400
        read.accessTokenLifetime = Int64(client.integer("accessTokenSeconds", default: 3600, in: 10...86_400))
        read.refreshTokenLifetime = Int64(client.integer("refreshTokenSeconds", default: 7 * 86_400, in: 60...year))
        read.idTokenLifetime = read.accessTokenLifetime
    }

    /// What a client's tokens are like, and how they are asked for.
    private func readTokens(of read: inout OAuthClient) throws {
        func algorithm(_ key: String, _ purpose: ServerKeys.Purpose, _ known: String) throws -> SignatureAlgorithm? {
            guard let text = client.optionalString(key) else { return nil }
            guard purpose.algorithms.contains(SignatureAlgorithm(rawValue: text)) else {
                throw client.issue(key, "\(text) is not supported; \(known)")
            }
            return SignatureAlgorithm(rawValue: text)
        }
        if let found = try algorithm("idTokenAlgorithm", .idToken, "RS256 (the default) or ES256") {
            read.idTokenAlgorithm = found
        }
        if let found = try algorithm("accessTokenAlgorithm", .accessToken, "ES256 (the default) or RS256") {
            read.accessTokenAlgorithm = found
        }
        read.idTokenClaims = client.strings("idTokenClaims")
        read.requiresPKCE = client.bool("requirePKCE", default: true)
        if read.kind == .public, !read.requiresPKCE {
            throw client.issue(
                "requirePKCE", "a public client always needs PKCE: only a client with a secret or a key can go without")
        }
    }

    /// The key `dpop` of a realm or a client: whether proofs must have a nonce.
    static func requiresNonce(_ reader: SettingsReader<Void>) throws -> Bool {
        guard let dpop = reader.optionalMapping("dpop") else { return false }
        let text = dpop.optionalString("nonce") ?? "offered"
        guard ["offered", "required"].contains(text) else {
            throw dpop.issue("nonce", "must be offered (the default) or required")
        }
        dpop.finish()
        return text == "required"
    }

    /// What people read is not empty, and fits into a line or two.
    static func check(_ text: String, of reader: SettingsReader<Void>, _ key: String) throws {
        guard (1...200).contains(text.utf8.count) else { throw reader.issue(key, "must have 1 to 200 bytes") }
    }
}
