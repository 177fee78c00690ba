import ArgumentParser
import AssentConfiguration
import AssentCore
import Foundation
import HTTPTypes
import Testing

@testable import Assent
@testable import AssentCLI

@Suite("assent request --sealed, and payloadEncryption of the client's file")
struct SealedRequestTests {
    /// Counts what is sent, and answers nothing that a client of payload encryption takes.
    private struct Counting: HTTPTransport {
        let sent = Locked<[HTTPRequest]>([])

        func send(_ call: HTTPCall) async throws -> HTTPReply {
            sent.withLock { $0.append(call.request) }
            return HTTPReply(HTTPResponse(status: .ok))
        }
    }

    private static let keys = [
        // RFC 7748 §6.1: Alice's and Bob's.
        "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo", "3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08",
    ]

    private static func file(sealing origins: [ClientFile.SealedOrigin] = []) -> ClientFile {
        ClientFile(
            server: "https://a.example/am", realm: "/", cookieName: "session", clientID: "app",
            redirectURI: "http://127.0.0.1/callback", scopes: ["openid"], journey: "Login",
            resources: [.init(origin: "https://api.example", credential: "nothing")],
            resourceBase: "https://api.example/v1", authority: nil, pins: [], payloadEncryption: origins)
    }

    private func send(_ file: ClientFile, _ arguments: String...) async throws -> (sent: [HTTPRequest], error: String) {
        let (sent, error) = try await send(file, ["--sealed"] + arguments)
        return (sent, try #require(error))
    }

    private func send(_ file: ClientFile, _ arguments: [String]) async throws -> (sent: [HTTPRequest], error: String?) {
        let home = try VaultCommandTests.Home()
        let places = Places(environment: [
            "HOME": home.directory.path, "XDG_CONFIG_HOME": home.directory.appending(path: "c").path,
            "XDG_STATE_HOME": home.directory.appending(path: "s").path,
        ])
        let parsed = try AssentCommand.parseAsRoot(["request", "--as", "nobody"] + arguments)
        let command = try #require(parsed as? RequestCommand)
        let network = Counting()
        var told: String?
        do {
            try await command.perform(
                ClientProfile(file: file, places: places, name: "default"), Prompt(), Console(silent: true),
                sending: command.request(), transport: network)
        } catch {
            told = "\(error)"
        }
        return (network.sent.withLock { $0 }, told)
    }

    @Test("What would not be sealed is refused with what to write, and nothing is sent")
    func refused() async throws {
        let other = Self.file(sealing: [.init(origin: "https://a.example", keys: Self.keys)])
        for (file, path) in [(Self.file(), "/a"), (other, "/a"), (other, "https://api.example:8443/a")] {
            let (sent, error) = try await send(file, "GET", path)
            #expect(
                sent.isEmpty && error.contains("payloadEncryption") && error.contains("Nothing was sent"), "\(error)")
        }
    }

    @Test("Where the file seals calls, a URL of an origin that it does not seal leaves with --unsealed alone")
    func unsealed() async throws {
        let other = Self.file(sealing: [.init(origin: "https://a.example", keys: Self.keys)])
        let url = "https://api.example/a"
        let (refused, error) = try await send(other, ["GET", url])
        #expect(refused.isEmpty && error?.isEmpty == false)
        // The controls: the request says so, a path goes where the file says, and another file seals nothing.
        for (file, arguments) in [
            (other, ["--unsealed", "GET", url]), (other, ["GET", "/b"]), (Self.file(), ["GET", url]),
        ] {
            let (sent, error) = try await send(file, arguments)
            #expect(sent.count == 1 && sent.first?.method == .get && error == nil, "\(arguments): \(error ?? "")")
        }
        #expect(throws: (any Error).self) {
            try AssentCommand.parseAsRoot(["request", "--sealed", "--unsealed", "GET", url])
        }
    }

    @Test("What is named is sealed: without a server that has its key, only a handshake has left")
    func sealed() async throws {
        let file = Self.file(sealing: [.init(origin: "https://api.example", keys: Self.keys)])
        for path in ["/a", "https://api.example/b"] {
            let (sent, _) = try await send(file, "GET", path)
            #expect(sent.map(\.path) == ["/assent-pe/1/handshake"])
            #expect(sent.first?.method == .post)
        }
    }

    @Test("The file is read as it was written, and says what is wrong with an origin, a role or a key")
    func file() throws {
        var file = Self.file(sealing: [
            .init(origin: "https://api.example", keys: Self.keys),
            .init(origin: "https://a.example:8443", keys: [Self.keys[0]], isDevice: true),
        ])
        file.registration = .init()
        #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
        let good = "payloadEncryption:\n  \"https://api.example\": {keys: [\(Self.keys[0])]}\n"
        let plain = Self.file().yaml
        #expect(try ClientFile.parse(plain + good, file: "client.yaml").payloadEncryption.count == 1)
        for (from, to, told) in [
            ("https://api.example", "http://api.example", "https origin"),
            ("https://api.example", "https://api.example/x", "https origin"),
            ("keys: [", "role: admin, keys: [", "must be app or device"),
            ("keys: [", "role: device, keys: [", "registration"),
            ("[\(Self.keys[0])]", "[]", "keys"), ("[\(Self.keys[0])]", "[x]", "payload-keys list"),
            ("[\(Self.keys[0])]", "[\(Self.keys[0]), \(Self.keys[0])]", "different"), ("keys: [", "key: [", "key"),
        ] {
            let text = plain + good.replacing(from, with: to)
            let error = #expect(throws: ConfigurationError.self, "\(to)") {
                try ClientFile.parse(text, file: "client.yaml")
            }
            #expect(error?.message.contains(told) == true, "\(to): \(error?.message ?? "")")
        }
    }

    @Test("A line says kind, number, origin, length and the session's age, and nothing of the call")
    func lines() throws {
        let origin = try Origin("https://api.example")
        let traces = [
            PayloadTrace(kind: .handshake, origin: origin, length: 203),
            PayloadTrace(kind: .request, origin: origin, length: 318, number: 1, age: 0),
            PayloadTrace(kind: .request, origin: origin, length: nil, number: 2, age: 61),
            PayloadTrace(kind: .reply, origin: origin, length: 318, number: 1, age: 2),
        ]
        #expect(
            traces.map(SealingDemand.line) == [
                "handshake with https://api.example: 203 bytes",
                "sealed request 1 to https://api.example: 318 bytes, session 0 s old",
                "sealed request 2 to https://api.example: as it comes, session 61 s old",
                "sealed reply 1 from https://api.example: 318 bytes, session 2 s old",
            ])
    }
}
