import Assent
import AssentCore
import AssentServer
import Testing

@testable import AssentCLI

@Suite("The client's file")
struct ClientFileTests {
    private let file = ClientFile(
        server: "https://localhost:8443/am", realm: "/alpha", cookieName: "session", clientID: "bank-app",
        redirectURI: "http://127.0.0.1/callback", scopes: ["openid", "accounts"], journey: "Log \"in\": now",
        resources: [.init(origin: "https://localhost:8444", credential: "accessToken")], authority: "/tmp/a b/ca.pem",
        pins: [])

    @Test("What is written is read as it was, whatever characters are in it")
    func roundTrip() throws {
        var file = file
        let pins = try (1...2).map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }
        file.pins = [.init(host: "localhost", pins: pins)]
        #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
    }

    @Test(
        "A mistake is refused with its line",
        arguments: [
            ("server: x\nclient: {id: a, redirectURI: b, scope: [c]}\n", "client.yaml:2: unknown key client.scope"),
            ("server: x\n", "client.yaml:1: client is missing"),
            (
                "server: x\nclient: {id: a, redirectURI: b}\nresources:\n  https://a: everything\n",
                "client.yaml:4: a resource gets accessToken, session or both"
            ),
            (
                "server: x\nclient: {id: a, redirectURI: b}\npins:\n  a:\n    - 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n",
                "client.yaml:4: this pin is the SHA-256 of nothing"
            ),
        ])
    func mistakes(text: String, message: String) {
        let error = #expect(throws: ConfigurationError.self) { try ClientFile.parse(text, file: "client.yaml") }
        #expect(error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
    }

    @Test("A missing file says which file is wanted")
    func missing() {
        let error = #expect(throws: ConfigurationError.self) { try ClientFile.load("/nowhere/client.yaml") }
        #expect(error?.message.contains("assent login --config") == true)
    }

    @Test("Configuration and state go where XDG says, and a relative path is ignored")
    func places() {
        let set = Places(environment: ["HOME": "/home/ana", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "s"])
        #expect(set.configurationFile(profile: "work") == "/c/assent/work.yaml")
        #expect(set.vault(profile: "work") == "/home/ana/.local/state/assent/work")
    }

    @Test("A pending request survives the command line")
    func pending() {
        for request in [
            PendingRequest(transactionID: "t-1", idempotencyKey: "k:2"),
            PendingRequest(transactionID: "t", idempotencyKey: nil),
        ] { #expect(PendingRequest(argument: request.argument) == request) }
    }
}
