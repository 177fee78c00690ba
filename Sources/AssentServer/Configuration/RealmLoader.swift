import AssentConfiguration
import AssentCore
import AssentEngine
import Foundation

/// Reads one realm of the configuration.
struct RealmLoader {
    let reader: YAMLReader
    let paths: ConfigurationPaths
    let isDevelopment: Bool

    /// A realm's name as the engine has it: with a slash in front.
    static func realmName(_ name: String) -> String { name.hasPrefix("/") ? name : "/" + name }

    func realm(_ key: String) throws -> RealmConfiguration {
        let name = Self.realmName(key)
        let journeys = try journeys()
        let names = Set(journeys.map(\.name))
        let defaultJourney = try reader.optionalString("defaultJourney")
        if let defaultJourney, !names.contains(defaultJourney) {
            let known = names.sorted().joined(separator: ", ")
            throw reader.error("defaultJourney", "there is no journey \(defaultJourney); known: \(known)")
        }
        let sessions = try reader.optionalMapping("sessions")
        let limits = SessionLimits(
            maxSession: Int64(try sessions?.optionalInteger("maxMinutes", in: 1...525_600) ?? 120) * 60,
            maxIdle: Int64(try sessions?.optionalInteger("idleMinutes", in: 1...525_600) ?? 30) * 60)
        try sessions?.finish()
        let transactions = try reader.optionalMapping("transactions")
        let failureStatus = try transactions?.optionalInteger("failureStatus", in: 200...401) ?? 200
        guard [200, 401].contains(failureStatus) else {
            throw (transactions ?? reader).error("failureStatus", "failureStatus is 200 (as AM does) or 401")
        }
        try transactions?.finish()
        let realm = RealmConfiguration(
            name: name, journeys: journeys, defaultJourney: defaultJourney, sessionLimits: limits,
            transactionFailureStatus: failureStatus, clients: try clients(),
            policySets: try policySets(realm: name, journeys: names), users: try users())
        try reader.finish()
        return realm
    }

    private func policySets(realm: String, journeys: Set<String>) throws -> [PolicySet] {
        try reader.mappings("policySets").map { name, set in
            var json = JSONObject()
            json["name"] = .string(name)
            json["realm"] = .string(realm)
            json["description"] = try set.json("description")
            json["actions"] = try set.json("actions")
            json["policies"] = try set.json("policies")
            try set.finish()
            do {
                return try PolicySet(.object(json), journeys: journeys)
            } catch let error as PolicyIssues {
                guard let issue = error.issues.first else { throw reader.error("policySets", "cannot be read") }
                throw ConfigurationError(
                    file: reader.file, line: set.line(below: issue.path), "policy set \(name): \(issue)")
            }
        }
    }

    private func clients() throws -> [OAuthClient] {
        try reader.mappings("clients").map { id, client in
            var kind = OAuthClient.Kind.public
            if client.has("secretHash"), client.has("secretFile") {
                throw client.error("secretFile", "a client has one of secretFile, secretHash")
            }
            if let hash = try client.optionalString("secretHash") { kind = .confidential(secretHash: hash) }
            if let file = try client.optionalString("secretFile") {
                let bytes = try PrivateFile.read(paths.resolve(file), limit: 4096, isNamed: true)
                let secret = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
                guard secret.utf8.count >= 32 else {
                    throw client.error("secretFile", "a client's secret has at least 32 characters, made by a machine")
                }
                kind = .confidential(secretHash: OAuthClient.hash(ofSecret: Secret(secret)))
            }
            var read = OAuthClient(
                id: id, kind: kind, redirectURIs: try client.strings("redirectURIs"),
                scopes: try client.strings("scopes"))
            read.postLogoutRedirectURIs = try client.strings("postLogoutRedirectURIs")
            read.defaultScopes = try client.strings("defaultScopes")
            read.audience = try client.strings("audience")
            if client.has("grantTypes") {
                read.grantTypes = Set(
                    try client.strings("grantTypes").map { text in
                        guard let type = OAuthClient.GrantType(rawValue: text) else {
                            let known = OAuthClient.GrantType.allCases.map(\.rawValue).joined(separator: ", ")
                            throw client.error("grantTypes", "unknown grant type \(text); known: \(known)")
                        }
                        return type
                    })
            }
            read.consentImplied = try client.bool("consentImplied", default: true)
            read.introspectsAll = try client.bool("introspectsAll", default: false)
            let year = 366 * 86_400
            read.accessTokenLifetime = Int64(try client.integer("accessTokenSeconds", default: 3600, in: 10...86_400))
            read.refreshTokenLifetime = Int64(
                try client.integer("refreshTokenSeconds", default: 7 * 86_400, in: 60...year))
            read.idTokenLifetime = read.accessTokenLifetime
            try client.finish()
            if let fault = read.validate().first { throw client.error(nil, "client \(fault)") }
            return read
        }
    }

    private func users() throws -> [UserSeed] {
        var names: Set<String> = []
        return try reader.list("users").map { user in
            let username = try user.string("username")
            guard names.insert(username).inserted else {
                throw user.error("username", "the realm has the user \(username) twice")
            }
            guard (1...100).contains(username.utf8.count),
                username.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x2C && $0 != 0x3D })
            else { throw user.error("username", "a username has 1 to 100 printable ASCII characters, no comma, no =") }
            let seed = UserSeed(
                username: username, password: try password(user),
                totpSeedFile: try user.optionalString("totpSeedFile").map(paths.resolve),
                roles: Set(
                    try user.strings("roles").map { text in
                        guard let role = Role(rawValue: text) else {
                            throw user.error("roles", "unknown role \(text); known: admin, auditor, pep")
                        }
                        return role
                    }), attributes: try attributes(user))
            try user.finish()
            return seed
        }
    }

    private func attributes(_ user: YAMLReader) throws -> JSONObject {
        guard let json = try user.json("attributes") else { return JSONObject() }
        guard let attributes = json.object else {
            throw user.error("attributes", "attributes are a mapping, for example {mail: ana@bank.example}")
        }
        return attributes
    }

    private func password(_ user: YAMLReader) throws -> UserSeed.Password {
        let ways = ["credentials", "passwordHash", "passwordFile"].filter { user.has($0) }
        guard ways.count <= 1 else {
            throw user.error(ways.last, "a user has one of credentials, passwordHash, passwordFile")
        }
        if let text = try user.optionalString("credentials") {
            guard text == "generated" else { throw user.error("credentials", "credentials can only be: generated") }
            guard isDevelopment else {
                throw user.error("credentials", "generated credentials need development: true; use passwordHash")
            }
            return .generated
        }
        if let hash = try user.optionalString("passwordHash") {
            guard PasswordHash(hash) != nil else {
                throw user.error(
                    "passwordHash", "is no hash that this version reads: make one with 'assent admin hash-password'")
            }
            return .hash(hash)
        }
        return try user.optionalString("passwordFile").map { .file(paths.resolve($0)) } ?? .none
    }
}
