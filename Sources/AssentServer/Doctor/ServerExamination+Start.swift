import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import Foundation

/// What else a start would be refused for: its ports, the files of its users.
extension ServerExamination {
    /// The names of the configuration's users that are stored already.
    static func storedUsers(_ configuration: ServerConfiguration) -> SQLStatement {
        let named = configuration.realms.flatMap { realm in realm.users.map { (realm.name, $0.username) } }
        let condition = named.reduce("1 = 0" as SQL) { condition, user in
            "\(condition) OR (realm = \(user.0) AND username = \(user.1))"
        }
        return .read("SELECT realm, username FROM users WHERE \(condition)")
    }

    /// Whether the users that a start would make can be made, and can sign in. Nothing is read for those that are
    /// stored.
    static func users(_ configuration: ServerConfiguration, stored rows: [SQLRow]) -> [Diagnosis] {
        let stored = Set(rows.compactMap { try? [$0.text("realm"), $0.text("username")] })
        let cost = PasswordHash.Cost(logN: configuration.passwordCost.trailingZeroBitCount)
        return configuration.realms.flatMap { realm in
            realm.users.filter { !stored.contains([realm.name, $0.username]) }.compactMap { user in
                do {
                    try UserSeeding.check(
                        user, cost: cost, rules: configuration.passwordRules,
                        isDevelopment: configuration.isDevelopment)
                    return withoutCodes(user, of: realm)
                } catch {
                    return Diagnosis(
                        .problem, "the user \(user.username) of \(realm.name) cannot be made: \(error.explanation)")
                }
            }
        }
    }

    /// A user with a password who cannot end a journey, since it always asks for a code.
    private static func withoutCodes(_ user: UserSeed, of realm: RealmConfiguration) -> Diagnosis? {
        guard user.totpSeedFile == nil else { return nil }
        switch user.password {
        case .none, .generated: return nil
        case .hash, .file: break
        }
        let journeys = realm.journeys.filter(\.needsAuthenticator).map(\.name).sorted()
        guard !journeys.isEmpty else { return nil }
        return Diagnosis(
            .note,
            "the user \(user.username) of \(realm.name) has no totpSeedFile, and cannot end what always asks for a "
                + "code (\(journeys.joined(separator: ", "))): name the file of an authenticator's seed, or give the "
                + "user one later by 'assent users totp \(user.username)'")
    }

    /// Ports that a start would not get. A server that runs on the same directory has them rightly.
    static func ports(_ configuration: ServerConfiguration) -> [Diagnosis] {
        let wanted = [("listen.port", configuration.port), ("gateway.port", configuration.gateway?.port ?? 0)]
        return wanted.filter {
            $0.1 != 0 && ListenAddress(host: configuration.host, port: $0.1).isTaken
        }.map { key, port in
            isRunning(configuration)
                ? Diagnosis(.fine, "\(key) \(port) is in use, and a server runs on this data directory")
                : Diagnosis(
                    .problem, "\(key) \(port) is taken by another program: end that one, or choose another port")
        }
    }

    private static func isRunning(_ configuration: ServerConfiguration) -> Bool {
        let file = open(configuration.dataDirectory + "/serve.lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        guard flock(file, LOCK_SH | LOCK_NB) == 0 else { return true }
        // A child process that was forked meanwhile has the file open, too, and would keep a server from starting.
        _ = flock(file, LOCK_UN)
        return false
    }
}
