import AssentConfiguration
import AssentCore
import AssentTokens
import Foundation

/// What a client must know of a server: `client.yaml`, which `assent serve` writes and `assent login --config` reads.
struct ClientFile: Sendable, Equatable {
    var server: String

    /// An OpenID provider other than the server's own; without a `server` in the file, it is the only one that is
    /// asked.
    var issuer: String?

    /// Whether there is a provider alone: no journeys, no session, none of the server's own interfaces.
    var isProviderOnly = false
    var realm: String
    var cookieName: String
    var clientID: String
    var redirectURI: String
    var scopes: [String]
    var journey: String

    /// Where users sign in, for people.
    var place: String { isProviderOnly ? issuer ?? server : "\(server), realm \(realm)" }

    /// Origins and what each gets.
    var resources: [Resource]

    /// What paths of requests are appended to: `resources.base` in the file.
    var resourceBase: String?

    /// Where the server had its gateway when it wrote the file; `nil` in a file that does not say so.
    var lastGateway: ServedGateway?

    /// The CA to trust, as a PEM file; `nil` for the system's.
    var authority: String?

    /// Pins by host.
    var pins: [HostPins]

    /// The name of the key by which the client authenticates, at what guards the vault; `nil` for a public client.
    var clientKey: String?

    /// How this installation registers as a client of its own; `nil` when ``clientID`` is the client, and not an app.
    var registration: Registration?

    /// The trust file that this app is shipped with, in the place of ``pins`` and ``resources``; `nil` without one.
    var trust: String?

    /// What happens when a probe of this process finds something.
    var integrity = IntegrityControls()

    /// Whether the server is told what they have found, where it takes that.
    var tellsServer = true

    /// The origins to which everything is sent sealed.
    var payloadEncryption: [SealedOrigin] = []

    struct HostPins: Sendable, Equatable {
        var host: String
        var pins: [Pin]

        /// Whether there is one pin without a backup, on purpose: `singlePin` in the file.
        var isSingle = false
    }

    /// Reads a file. With `acceptsOnePin` also one whose hosts lack a backup pin, which no client takes: a server that
    /// does not know its issuer's certificate writes such a file.
    static func load(_ path: String, acceptsOnePin: Bool = false) throws -> ClientFile {
        let text: String
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw ConfigurationError(
                file: path, line: nil,
                "cannot be read: \(ConfigurationFile.whyUnreadable(path)). Name the client.yaml that 'assent serve' wrote: assent login --config …/client.yaml"
            )
        }
        var read = try parse(text, file: path, acceptsOnePin: acceptsOnePin)
        // The profile keeps a copy, which is read from another directory.
        func absolute(_ file: String) -> String {
            guard !file.hasPrefix("/") else { return file }
            return URL(fileURLWithPath: path).deletingLastPathComponent().appendingPathComponent(file)
                .standardizedFileURL.path
        }
        read.authority = read.authority.map(absolute)
        read.trust = read.trust.map(absolute)
        read.registration = read.registration?.absolute(beside: path)
        return read
    }

    static func parse(_ text: String, file: String, acceptsOnePin: Bool = false) throws -> ClientFile {
        try ConfigurationFile.read(text, file: file) { try ClientFile($0, acceptsOnePin: acceptsOnePin) }
    }

    private static func clientKey(_ reader: SettingsReader<Void>) throws -> String? {
        guard let name = reader.optionalString("clientKey") else { return nil }
        do {
            try ClientKey.check(name: name)
        } catch {
            throw reader.issue("clientKey", "is not a key's name: 'assent clients key' makes a key, and says its name")
        }
        return name
    }

    private static func hostPins(_ reader: SettingsReader<Void>, acceptsOne: Bool) throws -> [HostPins] {
        func pin(_ text: String, _ host: String, _ place: SettingsReader<Void>) throws -> Pin {
            do { return try Pin(text) } catch { throw place.issue(host, error.explanation) }
        }
        var all: [HostPins] = []
        if let pins = reader.optionalMapping("pins") {
            for host in pins.keys {
                let read = try pins.strings(host).map { try pin($0, host, pins) }
                guard acceptsOne || Set(read).count >= 2 else {
                    throw pins.issue(
                        host,
                        "needs two different pins and has \(Set(read).count): with one, a new key locks everybody out. "
                            + "Name the issuer's pin too or, knowing that, write 'singlePin: {\(host): …}'")
                }
                all.append(HostPins(host: host, pins: read))
            }
        }
        if let single = reader.optionalMapping("singlePin") {
            for host in single.keys {
                guard !all.contains(where: { $0.host == host }) else {
                    throw single.issue(host, "is under pins already")
                }
                let read = try pin(single.string(host), host, single)
                all.append(HostPins(host: host, pins: [read], isSingle: true))
            }
        }
        return all
    }

    /// Writes the file for the users of a server, unless the one that is there says the same. What an operator has
    /// written into that one, and the server does not know, stays. One that cannot be read is moved aside: it may have
    /// what the operator wants, and a mistake in it; `warn` is told of that.
    ///
    /// - Returns: whether something was written that clients go by.
    /// - Throws: what the file system says.
    func write(to path: String, warn: (String) -> Void = { _ in }) throws -> Bool {
        let aside = path + ".old"
        var (written, isNews, isAside) = (self, true, false)
        if let there = try? ClientFile.load(path, acceptsOnePin: true), !there.isProviderOnly {
            var kept = there
            // The server's own authority is not an operator's: as long as it is in use, the server names it.
            let authority = kept.authority.map { URL(fileURLWithPath: $0).standardizedFileURL.path }
            if authority == Self.generatedAuthority(beside: path) { kept.authority = nil }
            written = keeping(kept)
            if there == written { return false }
            kept = there
            kept.lastGateway = written.lastGateway
            isNews = kept != written
        } else if FileManager.default.fileExists(atPath: path) {
            if let text = try? String(contentsOfFile: path, encoding: .utf8), text == yaml { return false }
            // A copy: where the new one cannot be written, the earlier one stays what it was.
            try? FileManager.default.removeItem(atPath: aside)
            try FileManager.default.copyItem(atPath: path, toPath: aside)
            isAside = true
        }
        try Data(written.yaml.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        if isAside {
            warn(
                "\(path) could not be read as the file of this server's clients, and was written anew. The earlier "
                    + "file is now \(aside): add again what is missing, for example payloadEncryption, before you give "
                    + "the new one to anybody.")
        }
        return isNews
    }

    /// Writes the file, as ``write(to:warn:)`` does, for a server that answers already, and goes on without it.
    ///
    /// - Returns: whether something was written that clients go by.
    func offer(at path: String, warn: (String) -> Void) -> Bool {
        do {
            return try write(to: path, warn: warn)
        } catch {
            warn(
                "\(path) cannot be written: \(error.localizedDescription) The server goes on. Clients need this file "
                    + "when its address or certificate has changed: put that right, and start the server again.")
            return false
        }
    }
}

extension ClientFile {
    private init(_ reader: SettingsReader<Void>, acceptsOnePin: Bool) throws {
        if reader.has("realms"), !reader.has("client") {
            throw reader.issue(
                "realms",
                "belongs in a server's file: name the client.yaml that 'assent serve' has written beside its data")
        }
        let client = reader.mapping("client")
        issuer = reader.optionalString("issuer")
        if let issuer, !reader.has("server") {
            guard let origin = try? Origin(issuer) else {
                throw reader.issue("issuer", "is not an https:// URL, for example https://login.example.com/tenant")
            }
            server = origin.description
            isProviderOnly = true
        } else {
            server = reader.string("server")
        }
        realm = reader.string("realm", default: "/")
        cookieName = reader.string("cookieName", default: WireName.sessionCookie)
        clientID = client.string("id")
        redirectURI = client.string("redirectURI")
        scopes = client.strings("scopes")
        journey = reader.string("journey", default: "Login")
        trust = reader.optionalString("trust")
        if trust != nil {
            for name in ["pins", "singlePin"] where reader.has(name) {
                throw reader.issue(name, "is what the trust file says: leave it out, or leave trust out")
            }
        }
        (resources, resourceBase) = try Self.resources(
            reader.optionalMapping("resources"), bySignedFile: trust != nil)
        lastGateway = try Self.lastGateway(reader)
        authority = reader.optionalString("authority")
        pins = try Self.hostPins(reader, acceptsOne: acceptsOnePin)
        clientKey = try Self.clientKey(reader)
        registration = try Self.registration(reader)
        (integrity, tellsServer) = try Self.integrity(reader)
        payloadEncryption = try Self.sealedOrigins(reader)
        client.finish()
    }

    /// The file's text.
    var yaml: String {
        let next = registration == nil ? "login" : "register"
        var lines = [
            "# Made by `assent serve`. Next: assent \(next) --config <this file>",
            "realm: \(Self.quoted(realm))", "cookieName: \(Self.quoted(cookieName))",
            "journey: \(Self.quoted(journey))", "client:", "  id: \(Self.quoted(clientID))",
            "  redirectURI: \(Self.quoted(redirectURI))",
            "  scopes: [\(scopes.map(Self.quoted).joined(separator: ", "))]",
        ]
        if let issuer { lines.insert("issuer: \(Self.quoted(issuer))", at: 1) }
        if !isProviderOnly { lines.insert("server: \(Self.quoted(server))", at: 1) }
        lines += resourceLines + gatewayLines
        if let clientKey { lines.append("clientKey: \(Self.quoted(clientKey))") }
        if let registration { lines += registration.yaml }
        lines += sealedLines
        if let authority { lines.append("authority: \(Self.quoted(authority))") }
        if let trust { lines.append("trust: \(Self.quoted(trust))") }
        lines += integrityLines
        let several = pins.filter { !$0.isSingle }
        if !several.isEmpty {
            lines.append("# The leaf's key and its issuer's.")
            lines.append("pins:")
            for host in several {
                lines.append("  \(Self.quoted(host.host)):")
                lines += host.pins.map { "    - \($0)" }
            }
        }
        let single = pins.filter(\.isSingle)
        if !single.isEmpty {
            lines.append("# No backup, on purpose: a new key locks this client out.")
            lines.append("singlePin:")
            for host in single { lines += host.pins.map { "  \(Self.quoted(host.host)): \($0)" } }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    static func quoted(_ text: String) -> String { JSONValue.string(text).serialized() }
}
