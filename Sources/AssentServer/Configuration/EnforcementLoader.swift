import AssentCore
import AssentEngine

/// Reads `enforcement` of a realm: which gateways elsewhere may ask, and about what.
struct EnforcementLoader {
    /// The realm's mapping.
    let reader: SettingsReader<Void>

    /// What has been read of the realm.
    let realm: RealmConfiguration

    func groups() throws -> [EnforcementGroup] {
        var owners: [String: String] = [:]
        return try reader.mappings("enforcement").map { name, reader in
            let group = try group(name, reader)
            for client in group.clients {
                if let other = owners.updateValue(name, forKey: client) {
                    throw reader.issue("clients", "\(client) is in the group \(other) too: a client can be in one")
                }
            }
            return group
        }
    }

    /// What is wrong with the groups of a server at these URLs, its own and that of its gateway; `nil` when nothing is.
    ///
    /// A group that speaks for one of them could use what clients send there: their proofs are for that origin, and the
    /// tokens about callers that a gateway's services believe have its name.
    static func fault(among realms: [RealmConfiguration], of urls: [String]) -> String? {
        let own = Set(urls.compactMap { try? Origin($0) })
        for group in realms.flatMap(\.enforcement) {
            guard let origin = group.origins.first(where: own.contains) else { continue }
            return "the group \(group.name) of enforcement cannot speak for \(origin): that is this server's own"
        }
        return nil
    }

    private func group(_ name: String, _ reader: SettingsReader<Void>) throws -> EnforcementGroup {
        guard (1...64).contains(name.utf8.count),
            name.utf8.allSatisfy({ $0.isASCIIAlphanumeric || "-_.".utf8.contains($0) })
        else { throw reader.issue(nil, "a group's name has 1 to 64 letters, digits, -, _ and .") }
        var group = EnforcementGroup(
            name: name, clients: try clients(reader), policySets: try policySets(reader), origins: try origins(reader))
        group.believesAddress = reader.bool("believesAddress", default: false)
        group.maxBodyBytes = reader.integer("maxBodyBytes", default: 64 << 10, in: 1...16 << 20)
        reader.finish()
        return group
    }

    private func clients(_ reader: SettingsReader<Void>) throws -> Set<String> {
        let ids = reader.strings("clients")
        guard !ids.isEmpty else { throw reader.issue("clients", "must name a client of the realm") }
        for id in ids {
            guard let client = realm.clients.first(where: { $0.id == id }) else {
                throw reader.issue("clients", "there is no client \(id) in the realm")
            }
            guard client.grantTypes.contains(.clientCredentials), client.scopes.contains(EnforcementDesk.scope) else {
                throw reader.issue(
                    "clients",
                    "\(id) gets no token to ask with: give it client_credentials and the scope \(EnforcementDesk.scope)"
                )
            }
        }
        return Set(ids)
    }

    private func policySets(_ reader: SettingsReader<Void>) throws -> Set<String> {
        let names = reader.strings("policySets")
        guard !names.isEmpty else { throw reader.issue("policySets", "must name a policy set of the realm") }
        for name in names where !realm.policySets.contains(where: { $0.name == name }) {
            throw reader.issue("policySets", "there is no policy set \(name) in the realm")
        }
        return Set(names)
    }

    private func origins(_ reader: SettingsReader<Void>) throws -> Set<Origin> {
        let texts = reader.strings("origins")
        guard !texts.isEmpty else {
            throw reader.issue("origins", "must name an address by which clients know the gateway")
        }
        return Set(
            try texts.map { text in
                guard let origin = try? Origin(headerValue: text), origin.isSecure else {
                    throw reader.issue(
                        "origins",
                        "\(text) is not an https origin: scheme, host and port alone, for example https://api.bank.example"
                    )
                }
                return origin
            })
    }
}
