import AssentConfiguration
import AssentCore
import AssentEngine
import Foundation

/// Reads one realm of the configuration.
struct RealmLoader {
    let reader: SettingsReader<Void>
    let paths: ConfigurationPaths
    let isDevelopment: Bool

    /// A realm's name as the engine has it: with a slash in front.
    static func realmName(_ name: String) -> String { name.hasPrefix("/") ? name : "/" + name }

    /// Why no request would reach a realm of this name; `nil` when requests do.
    private static func fault(inRealmName name: String) -> String? {
        let parts = name.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        if parts.first == "root" {
            return "cannot be a realm: AM's clients call the top realm root. Write / for the top realm"
        }
        if name != "/", parts.contains("") { return "cannot be a realm: it has an empty part between slashes" }
        // Clients escape all other characters in a path, and the realm's own addresses are made of its name.
        if name.utf8.contains(where: { !$0.isURIUnreserved && $0 != UInt8(ascii: "/") }) {
            return "cannot be a realm: use letters of ASCII, digits and - . _ ~, which stand in URLs as they are"
        }
        if parts.contains(where: { $0 == "." || $0 == ".." }) {
            return "cannot be a realm: . and .. lead elsewhere in a URL"
        }
        return parts.count > 8 ? "cannot be a realm: it has more than 8 parts" : nil
    }

    /// The journey that runs when a client names none.
    private func defaultJourney(of journeys: [JourneyDefinition]) throws -> String? {
        guard let name = reader.optionalString("defaultJourney") else { return nil }
        guard let journey = journeys.first(where: { $0.name == name }) else {
            let known = journeys.map(\.name).sorted().joined(separator: ", ")
            throw reader.issue("defaultJourney", "there is no journey \(name); known: \(known)")
        }
        guard !journey.transactionalOnly else {
            throw reader.issue(
                "defaultJourney", "\(name) is transactionalOnly: nobody could sign in without naming a journey")
        }
        return name
    }

    func realm(_ key: String) throws -> RealmConfiguration {
        let name = Self.realmName(key)
        if let fault = Self.fault(inRealmName: name) { throw reader.issue(nil, "\(key) \(fault)") }
        let journeys = journeys()
        let names = Set(journeys.map(\.name))
        let defaultJourney = try defaultJourney(of: journeys)
        let sessions = reader.optionalMapping("sessions")
        let limits = SessionLimits(
            maxSession: Int64(sessions?.optionalInteger("maxMinutes", in: 1...525_600) ?? 120) * 60,
            maxIdle: Int64(sessions?.optionalInteger("idleMinutes", in: 1...525_600) ?? 30) * 60)
        let tokensKeepSessions = sessions?.bool("tokensKeepAlive", default: true) ?? true
        sessions?.finish()
        let transactions = reader.optionalMapping("transactions")
        let failureStatus = transactions?.optionalInteger("failureStatus", in: 200...401) ?? 200
        guard [200, 401].contains(failureStatus) else {
            throw (transactions ?? reader).issue("failureStatus", "must be 200 (as AM does) or 401")
        }
        transactions?.finish()
        let apps = try apps()
        if !reader.has("deviceConfig"), let app = apps.first(where: { $0.minimumVersion != nil }) {
            throw reader.issue("apps", "\(app.id): minimumVersion belongs to deviceConfig, which tells it to the app")
        }
        var realm = RealmConfiguration(
            name: name, journeys: journeys, defaultJourney: defaultJourney, sessionLimits: limits,
            tokensKeepSessions: tokensKeepSessions, requiresNonce: try ClientLoader.requiresNonce(reader),
            transactionFailureStatus: failureStatus, contexts: try contexts(journeys), scopeTexts: try scopeTexts(),
            allowedOrigins: try WebOrigins.read(reader),
            clients: try clients(beside: apps), apps: apps,
            deviceConfiguration: try reader.optionalMapping("deviceConfig").map {
                try DeviceConfigurationLoader(reader: $0, paths: paths).settings(for: apps, of: name)
            },
            takesIntegrityReports: reader.bool("integrityReports", default: false),
            policySets: try policySets(realm: name, journeys: names),
            signing: try reader.optionalMapping("signing").map {
                try SigningLoader(reader: $0, realm: name).settings()
            },
            users: try users())
        realm.enforcement = try EnforcementLoader(reader: reader, realm: realm).groups()
        reader.finish()
        return realm
    }

    private func policySets(realm: String, journeys: Set<String>) throws -> [PolicySet] {
        try reader.mappings("policySets").map { name, set in
            var json = JSONObject()
            json["name"] = .string(name)
            json["realm"] = .string(realm)
            json["description"] = set.json("description")
            json["actions"] = set.json("actions")
            json["policies"] = set.json("policies")
            json["selfEvaluation"] = set.json("selfEvaluation")
            set.finish()
            do {
                return try PolicySet(.object(json), journeys: journeys)
            } catch let error as SettingsIssues {
                for issue in error.issues { set.refuse(issue.path, issue.message) }
                throw set.issue(nil, "cannot be used")
            }
        }
    }

    private func clients(beside apps: [OAuthApp]) throws -> [OAuthClient] {
        try reader.mappings("clients").map { id, client in
            guard apps.isEmpty || !id.contains(OAuthApp.separator) else {
                throw client.issue(nil, "no client can have ~ in its id where there are apps: those of instances do")
            }
            return try ClientLoader(client: client, paths: paths).client(id)
        }
    }

    private func apps() throws -> [OAuthApp] {
        try reader.mappings("apps").map { id, app in try ClientLoader(client: app, paths: paths).app(id) }
    }

    /// The key `scopeTexts`: what the consent page says of a scope.
    private func scopeTexts() throws -> [String: String] {
        guard let texts = reader.optionalMapping("scopeTexts") else { return [:] }
        var read: [String: String] = [:]
        for scope in texts.keys {
            let text = texts.string(scope)
            try ClientLoader.check(text, of: texts, scope)
            read[scope] = text
        }
        texts.finish()
        return read
    }

    private func users() throws -> [UserSeed] {
        var names: Set<String> = []
        return try reader.list("users").map { user in
            let username = user.string("username")
            guard names.insert(username.lowercased()).inserted else {
                throw user.issue(
                    "username", "the realm has the user \(username) twice; upper and lower case make no difference")
            }
            guard User.isAllowedName(username) else { throw user.issue("username", User.nameRule) }
            let seed = UserSeed(
                username: username, password: try password(user),
                totpSeedFile: user.optionalString("totpSeedFile").map(paths.resolve),
                roles: Set(
                    try user.strings("roles").map { text in
                        guard let role = Role(rawValue: text) else {
                            throw user.issue("roles", "unknown role \(text); known: admin, auditor, pep")
                        }
                        return role
                    }), attributes: try attributes(user))
            user.finish()
            return seed
        }
    }

    private func attributes(_ user: SettingsReader<Void>) throws -> JSONObject {
        guard let json = user.json("attributes") else { return JSONObject() }
        guard let attributes = json.object else {
            throw user.issue("attributes", "must be a mapping, for example {mail: ana@bank.example}")
        }
        return attributes
    }

    private func password(_ user: SettingsReader<Void>) throws -> UserSeed.Password {
        let ways = ["credentials", "passwordHash", "passwordFile"].filter { user.has($0) }
        guard ways.count <= 1 else {
            throw user.issue(ways.last, "a user has one of credentials, passwordHash, passwordFile")
        }
        if let text = user.optionalString("credentials") {
            guard text == "generated" else { throw user.issue("credentials", "can only be: generated") }
            guard isDevelopment else {
                throw user.issue(
                    "credentials",
                    "generated credentials need development: true; write passwordHash instead, which 'assent admin "
                        + "hash-password' makes")
            }
            return .generated
        }
        if let hash = user.optionalString("passwordHash") {
            guard PasswordHash(hash) != nil else {
                throw user.issue(
                    "passwordHash", "is not a hash that this version reads: make one with 'assent admin hash-password'")
            }
            return .hash(hash)
        }
        return user.optionalString("passwordFile").map { .file(paths.resolve($0)) } ?? .none
    }
}
