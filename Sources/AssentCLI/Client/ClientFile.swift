import AssentCore
import AssentServer
import Foundation

/// What a client must know of a server: `client.yaml`, which `assent serve` writes and `assent login --config` reads.
struct ClientFile: Sendable, Equatable {
    var server: String
    var realm: String
    var cookieName: String
    var clientID: String
    var redirectURI: String
    var scopes: [String]
    var journey: String

    /// Origins and what each gets: `accessToken`, `session` or `both`.
    var resources: [Resource]

    /// The CA to trust, as a PEM file; `nil` for the system's.
    var authority: String?

    /// Pins by host.
    var pins: [HostPins]

    struct Resource: Sendable, Equatable {
        var origin: String
        var credential: String
    }

    struct HostPins: Sendable, Equatable {
        var host: String
        var pins: [Pin]
    }

    /// Reads a file.
    static func load(_ path: String) throws -> ClientFile {
        let text: String
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw ConfigurationError(
                file: path, line: nil,
                "cannot be read. Name the client.yaml that 'assent serve' wrote: assent login --config …/client.yaml")
        }
        return try parse(text, file: path)
    }

    static func parse(_ text: String, file: String) throws -> ClientFile {
        let reader = try YAMLReader.document(file: file, text: text)
        let client = try reader.mapping("client")
        let resources = try reader.optionalMapping("resources")
        let pins = try reader.optionalMapping("pins")
        let read = ClientFile(
            server: try reader.string("server"), realm: try reader.optionalString("realm") ?? "/",
            cookieName: try reader.optionalString("cookieName") ?? "iPlanetDirectoryPro",
            clientID: try client.string("id"), redirectURI: try client.string("redirectURI"),
            scopes: try client.strings("scopes"), journey: try reader.optionalString("journey") ?? "Login",
            resources: try resources.map { resources in
                try resources.keys.map { origin in
                    let credential = try resources.string(origin)
                    guard ["accessToken", "session", "both"].contains(credential) else {
                        throw resources.error(origin, "a resource gets accessToken, session or both")
                    }
                    return Resource(origin: origin, credential: credential)
                }
            } ?? [],
            authority: try reader.optionalString("authority"),
            pins: try pins.map { pins in
                try pins.keys.map { host in
                    HostPins(
                        host: host,
                        pins: try pins.strings(host).map { text in
                            do { return try Pin(text) } catch { throw pins.error(host, "\(error)") }
                        })
                }
            } ?? [])
        try client.finish()
        try reader.finish()
        return read
    }
}

extension ClientFile {
    /// The file for a running server's first public client.
    init?(endpoints: Endpoints, configuration: ServerConfiguration) {
        guard let client = configuration.firstPublicClient else { return nil }
        var hosts: [String] = []
        for url in [endpoints.server, endpoints.gateway].compactMap(\.self) {
            if let host = URLComponents(string: url)?.host, !hosts.contains(host) { hosts.append(host) }
        }
        self.init(
            server: endpoints.server, realm: client.realm, cookieName: endpoints.cookieName, clientID: client.id,
            redirectURI: client.redirectURI, scopes: client.scopes, journey: client.journey,
            resources: endpoints.gateway.map { [Resource(origin: $0, credential: "accessToken")] } ?? [],
            authority: endpoints.authorityFile, pins: hosts.map { HostPins(host: $0, pins: endpoints.pins) })
    }

    /// The file's text.
    var yaml: String {
        var lines = [
            "# Made by `assent serve`. Next: assent login --config <this file>", "server: \(Self.quoted(server))",
            "realm: \(Self.quoted(realm))", "cookieName: \(Self.quoted(cookieName))",
            "journey: \(Self.quoted(journey))", "client:", "  id: \(Self.quoted(clientID))",
            "  redirectURI: \(Self.quoted(redirectURI))",
            "  scopes: [\(scopes.map(Self.quoted).joined(separator: ", "))]",
        ]
        if !resources.isEmpty {
            lines.append("# Origins that get a credential; no other ever does.")
            lines.append("resources:")
            lines += resources.map { "  \(Self.quoted($0.origin)): \($0.credential)" }
        }
        if let authority { lines.append("authority: \(Self.quoted(authority))") }
        if !pins.isEmpty {
            lines.append("# The leaf's key and its CA's.")
            lines.append("pins:")
            for host in pins {
                lines.append("  \(Self.quoted(host.host)):")
                lines += host.pins.map { "    - \($0)" }
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func quoted(_ text: String) -> String { JSONValue.string(text).serialized() }
}
