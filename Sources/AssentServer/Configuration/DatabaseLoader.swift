import AssentCore
import AssentStore

/// Reads where a PostgreSQL database is.
struct DatabaseLoader {
    let paths: ConfigurationPaths

    /// The settings of `database`; `nil` for the file in the data directory.
    func postgreSQL(_ root: SettingsReader<Void>) throws -> PostgreSQLConfiguration? {
        guard let database = root.optionalMapping("database") else { return nil }
        guard let reader = database.optionalMapping("postgresql") else {
            throw database.issue("postgresql", "is missing; without 'database' the data is in a SQLite file")
        }
        database.finish()
        let isUnencrypted = reader.bool("unencrypted", default: false)
        let authority = reader.optionalString("authority").map(paths.resolve)
        if isUnencrypted, authority != nil {
            throw reader.issue("unencrypted", "is true, so no certificate is verified: remove it, or 'authority'")
        }
        var configuration = PostgreSQLConfiguration(
            hosts: try reader.strings("hosts").map { try Self.host($0, reader) },
            database: reader.string("database"), user: reader.string("user"),
            passwordFile: reader.optionalString("passwordFile").map(paths.resolve),
            tls: isUnencrypted ? .off : authority.map { .verified(authority: $0) })
        configuration.connections = reader.integer("connections", default: 10, in: 1...1_000)
        configuration.requiresStandby = reader.bool("requireStandby", default: false)
        guard !configuration.hosts.isEmpty else {
            throw reader.issue("hosts", "must name a server, for example [db.bank.example] or [/run/postgresql]")
        }
        for (key, value) in [("database", configuration.database), ("user", configuration.user)]
        where value.isEmpty || value.utf8.contains(0) {
            throw reader.issue(key, "must be a name")
        }
        reader.finish()
        return configuration
    }

    /// A name or an address, perhaps with a port, or the directory of a Unix socket.
    private static func host(_ text: String, _ reader: SettingsReader<Void>) throws -> PostgreSQLConfiguration.Host {
        let wrong = reader.issue("hosts", "\(text) is not a host: write name, name:port, [address]:port or /directory")
        guard !text.isEmpty, !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x2C }) else { throw wrong }
        if text.hasPrefix("/") { return .init(text) }
        let isBracketed = text.hasPrefix("[")
        guard isBracketed || text.count(where: { $0 == ":" }) == 1 else { return .init(text) }
        let end = (isBracketed ? text.firstIndex(of: "]") : text.firstIndex(of: ":")) ?? text.endIndex
        let name = isBracketed ? text.dropFirst().prefix { $0 != "]" } : text[..<end]
        let rest = text[end...].drop { $0 == "]" }
        guard end < text.endIndex, !name.isEmpty else { throw wrong }
        if rest.isEmpty { return .init(String(name)) }
        guard rest.hasPrefix(":"), let port = Int(rest.dropFirst()), (1...65_535).contains(port) else { throw wrong }
        return .init(String(name), port: port)
    }
}
