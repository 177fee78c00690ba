import Assent
import AssentCore
import AssentServer
import Foundation
import HTTPTypes
import Testing

@testable import AssentDemo

/// What leaves the apps of a story, and how they are set up to seal it.
struct SealedWire: Sendable, CustomStringConvertible {
    private let kept = Locked<[HTTPRequest]>([])

    /// How many calls the apps have made since ``clear()`` in a world that seals them.
    private let calls = Locked(0)

    /// What was sent since ``clear()``, as who ends TLS sees it.
    var sent: [HTTPRequest] { kept.withLock { $0 } }

    /// The paths of it, of handshakes and of messages.
    var handshakes: [HTTPRequest] { sent.filter { $0.path == "/assent-pe/1/handshake" } }
    var messages: [HTTPRequest] { sent.filter { $0.path == "/assent-pe/1/message" } }

    /// Forgets what was sent.
    func clear() {
        kept.withLock { $0 = [] }
        calls.withLock { $0 = 0 }
    }

    /// Whether all that was sent is handshakes and messages, which say nothing of the calls inside.
    var isSealed: Bool {
        let sealed = handshakes + messages
        return !sent.isEmpty && sealed.count == sent.count
            && messages.allSatisfy { $0.headerFields[.authorization] == nil && $0.headerFields[.dpop] == nil }
            && sealed.allSatisfy { $0.headerFields[.cookie] == nil }
    }

    /// Whether the apps have made so many calls, and each was a sealed message, and nothing was sent beside them.
    func hasSealed(atLeast count: Int) -> Bool {
        let calls = calls.withLock { $0 }
        return isSealed && calls >= count && messages.count >= calls
    }

    var description: String {
        "\(calls.withLock { $0 }) calls, \(messages.count) messages, and \(Set(sent.map { $0.path ?? "" }))"
    }

    /// Counts the calls to these origins that come to what seals them.
    func counting(_ transport: any HTTPTransport, to origins: [Origin]) -> any HTTPTransport {
        Counted(wire: self, transport: transport, origins: Set(origins))
    }

    /// Sees what leaves for these origins alone.
    func watching(_ transport: any HTTPTransport, to origins: [Origin]) -> any HTTPTransport {
        Watched(wire: self, transport: transport, origins: Set(origins))
    }

    func watching(_ transport: any HTTPTransport) -> any HTTPTransport {
        Watched(wire: self, transport: transport, origins: nil)
    }

    private struct Counted: HTTPTransport {
        let wire: SealedWire
        let transport: any HTTPTransport
        let origins: Set<Origin>

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            if let origin = try? call.origin, origins.contains(origin) { wire.calls.withLock { $0 += 1 } }
            return try await transport.send(call)
        }
    }

    private struct Watched: HTTPTransport {
        let wire: SealedWire
        let transport: any HTTPTransport
        let origins: Set<Origin>?

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let origin = try? call.origin
            if origins == nil || origin.map({ origins?.contains($0) == true }) ?? true {
                wire.kept.withLock { $0.append(call.request) }
            }
            return try await transport.send(call)
        }
    }
}

/// The keys of payload encryption of a story's server, made by its operator.
struct PayloadKeyring {
    private let scene: InstallationScene
    private let operating: Assent

    /// The operator signs in by an app of its own, plainly, and becomes the first administrator.
    init(_ story: Story) async throws {
        operating = try story.makeAssent(vault: "operator")
        try await story.signIn(operating, forcing: false)
        scene = InstallationScene(story)
        let file = try #require(story.world.endpoints.bootstrapFile)
        let token = try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .newlines)
        #expect(try await scene.administer(operating, "bootstrap", ["token": .string(token)]).status == 200)
    }

    /// Makes a key.
    func add() async throws -> Assent.PayloadEncryption.Key {
        let reply = try await scene.administer(operating, "addPayloadKey", ["days": 365])
        let made = try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))
        return try Assent.PayloadEncryption.Key(try #require(made["x"]?.string))
    }

    /// Takes a key back.
    func withdraw(_ key: Assent.PayloadEncryption.Key) async throws {
        #expect(try await scene.administer(operating, "withdrawPayloadKey", ["kid": .string(key.kid)]).status == 200)
    }

    /// What lets one installation register.
    func initialAccessToken() async throws -> Secret { try await scene.token(operating, count: 1) }

    func shutdown() async { await operating.shutdown() }
}

extension Assent.Configuration {
    /// Seals all calls to the server and the gateway of a story.
    mutating func seal(
        _ story: Story, with keys: [Assent.PayloadEncryption.Key], as role: Assent.PayloadEncryption.Role = .app
    ) throws {
        for url in [story.world.endpoints.server, story.gateway] {
            payloadEncryption[try Origin(url).description] = Assent.PayloadEncryption(keys: keys, role: role)
        }
    }
}
