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
