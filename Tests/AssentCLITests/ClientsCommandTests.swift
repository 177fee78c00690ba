#if os(Linux)
import Assent
import AssentConfiguration
import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI

@Suite("assent clients key")
struct ClientsCommandTests {
    private typealias Home = VaultCommandTests.Home

    private func keySet(_ text: String) throws -> JWKSet { try JWKSet(try JSONValue.parse(Array(text.utf8))) }

    /// The modes of everything under a directory, by name.
    private func modes(_ directory: URL) throws -> [String: Int] {
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
        return try Dictionary(
            uniqueKeysWithValues: names.map { name in
                let path = directory.appending(path: name).path
                return (name, try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int ?? -1)
            })
    }

    @Test("It prints the public half alone, as a set with one key that is named by its thumbprint")
    func made() throws {
        let home = try Home()
        let told = try home.run("clients", "key", "bank-app")
        #expect(told.status == 0 && told.err.contains("clientKey: bank-app"), "\(told.err)")
        #expect(told.err.contains("everyone who can read that file"))
        let json = try JSONValue.parse(Array(told.out.utf8))
        let members = Set(json["keys"]?.array?.first?.object?.members.map(\.name) ?? [])
        #expect(members == ["kty", "crv", "x", "y", "kid", "use", "alg"] && json.object?.members.count == 1)
        let keys = try keySet(told.out)
        #expect(keys.keys.count == 1 && keys.keys.first?.thumbprint == keys.keys.first?.keyID)
        let shown = try home.run("clients", "key", "bank-app", "--show")
        #expect(shown.status == 0 && shown.out == told.out && shown.err.isEmpty)
        let state = try modes(home.directory.appending(path: "state/assent/default"))
        #expect(state["vault.key"] == 0o600 && state.values.allSatisfy { $0 & 0o077 == 0 }, "\(state)")
    }

    @Test("A key that is there stays, until --replace says otherwise")
    func replaced() throws {
        let home = try Home()
        let first = try home.run("clients", "key", "bank-app").out
        let refused = try home.run("clients", "key", "bank-app")
        #expect(refused.status == 1 && refused.out.isEmpty && refused.err.contains("--replace"), "\(refused.err)")
        #expect(try home.run("clients", "key", "bank-app", "--show").out == first)
        #expect(try home.run("clients", "key", "other").out != first)
        let second = try home.run("clients", "key", "bank-app", "--replace", "--json")
        #expect(second.status == 0 && second.err.isEmpty)
        #expect(try keySet(second.out).keys.first?.thumbprint != keySet(first).keys.first?.thumbprint)
        #expect(try home.run("clients", "key", "bank-app", "--show").out == second.out)
    }

    @Test("No name that somebody gives reaches the vault's own keys")
    func vault() async throws {
        let home = try Home()
        try await home.fill()
        let provider = SoftwareKeyProvider(unprotectedFile: home.keyFile)
        let names = try await provider.keyNames()
        for name in names {
            #expect(try home.run("clients", "key", name, "--show").status == 1)
            _ = try home.run("clients", "key", name, "--replace")
        }
        let after = try await provider.keyNames()
        #expect(!names.isEmpty && Set(after).isSuperset(of: names))
        #expect(try home.run("vault", "list").out.contains("tokens  version 1"))
    }

    @Test("--show makes nothing; a key that is not there is an error that says what to do, for scripts too")
    func absent() throws {
        let home = try Home()
        let told = try home.run("clients", "key", "bank-app", "--show")
        #expect(told.status == 1 && told.out.isEmpty && told.err.contains("clientKeyMissing"), "\(told.err)")
        let json = try home.run("clients", "key", "bank-app", "--show", "--json")
        #expect(try JSONValue.parse(Array(json.out.utf8))["error"] == "clientKeyMissing")
        #expect(!FileManager.default.fileExists(atPath: home.keyFile.path))
    }

    @Test("A passphrase guards the key from the start, and the vault that comes later")
    func passphrase() async throws {
        let home = try Home()
        let (right, wrong) = (try home.file("right", "correct horse\n"), try home.file("wrong", "wrong horse\n"))
        let made = try home.run("clients", "key", "bank-app", "--keys", "passphrase", "--passphrase-file", right)
        #expect(made.status == 0 && !made.err.contains("key file"), "\(made.err)")
        #expect(try home.run("clients", "key", "bank-app", "--show", "--passphrase-file", wrong).status == 1)
        let shown = try home.run("clients", "key", "bank-app", "--show", "--passphrase-file", right)
        #expect(shown.status == 0 && shown.out == made.out)
        let provider = SoftwareKeyProvider(
            file: home.vault.appending(path: VaultFileNames.passphraseKeys),
            passphrase: KnownSecret(Secret("correct horse")))
        _ = try await FileVault.open(home.vault, store: "default", keys: .software(provider))
        #expect(try home.run("vault", "check", "--passphrase-file", right).status == 0)
        #expect(try await ClientKey.find(named: "bank-app", at: provider).keySet == keySet(made.out))
    }

    @Test(
        "A vault that something else guards already keeps its keys together, and a choice without a key leaves nothing")
    func elsewhere() async throws {
        let home = try Home()
        let failed = try home.run(
            "clients", "key", "a", "--keys", "pkcs11", "--module", "/nonexistent/module.so", "--token", "mine")
        #expect(failed.status == 1 && failed.out.isEmpty, "\(failed)")
        try await home.fill()
        let file = try home.file("right", "correct horse\n")
        let refused = try home.run("clients", "key", "a", "--keys", "passphrase", "--passphrase-file", file)
        #expect(refused.status == 1 && refused.err.contains("assent vault rekey --to passphrase"), "\(refused.err)")
        #expect(try home.run("clients", "key", "a").status == 0)
        #expect(try home.run("clients", "key", "b", "--passphrase-file", file).status == 1)
    }

    @Test(
        "What contradicts itself, or cannot be a name, is refused before anything is made",
        arguments: [
            ["clients", "key"], ["clients", "key", ""], ["clients", "key", "a b"], ["clients", "key", "a", "b"],
            ["clients", "key", String(repeating: "n", count: 58)], ["clients", "key", "a", "--profile", "../b"],
            ["clients", "key", "a", "--show", "--replace"], ["clients", "key", "a", "--show", "--keys", "tpm"],
            ["clients", "key", "a", "--keys", "smartcard"], ["clients", "key", "a", "--keys", "pkcs11"],
            ["clients", "key", "a", "--token", "mine"], ["clients", "key", "a", "--keys", "key-file", "--without-pin"],
            ["clients", "key", "a", "--keys", "tpm", "--tpm-parent", "1"],
            ["clients", "key", "a", "--passphrase-file", "a", "--passphrase-fd", "0"],
        ])
    func refused(arguments: [String]) throws {
        let home = try Home()
        let told = try home.refusal(arguments)
        #expect(told.status == 64 && !told.err.isEmpty && told.out.isEmpty, "\(arguments): \(told)")
        #expect(!FileManager.default.fileExists(atPath: home.directory.appending(path: "state").path))
    }

    @Test("--help says where the private half stays, and how the client gets the key")
    func help() throws {
        let told = try Home().run("clients", "key", "--help")
        #expect(told.status == 0)
        for word in ["private half", "clientKey", "--replace", "--show", "--keys"] { #expect(told.out.contains(word)) }
    }

    @Test("The client's file names the key; one that cannot be a name is an error with its line")
    func clientFile() throws {
        var file = Self.file
        file.clientKey = "bank-app"
        #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
        #expect(!Self.file.yaml.contains("clientKey"))
        let text = file.yaml.replacing("\"bank-app\"", with: "\"bank app\"")
        let error = #expect(throws: ConfigurationError.self) { try ClientFile.parse(text, file: "client.yaml") }
        #expect(error?.message.contains("assent clients key") == true && error?.line != nil, "\(error as Any)")
    }

    private static let issuer = "https://a.example/am/oauth2"
    private static let file = ClientFile(
        server: "https://a.example/am", issuer: issuer, realm: "/", cookieName: "session", clientID: "app",
        redirectURI: "http://127.0.0.1/callback", scopes: ["accounts"], journey: "Login",
        resources: [.init(origin: "https://api.example", credential: "accessToken")], authority: nil, pins: [])

    @Test("Commands of the profile authenticate by the key that the file names; without the key they ask for nothing")
    func login() async throws {
        let home = try Home()
        let places = Places(environment: [
            "HOME": home.directory.path, "XDG_CONFIG_HOME": home.directory.appending(path: "config").path,
            "XDG_STATE_HOME": home.directory.appending(path: "state").path,
        ])
        var file = Self.file
        file.clientKey = "bank-app"
        let profile = ClientProfile(file: file, places: places, name: "default")
        let sent = Locked<[FormItems]>([])
        let transport = AnsweringTransport(issuer: Self.issuer, forms: sent)
        let clock = ManualClock(Date())
        let early = try profile.assent(transport: transport, clock: clock)
        try await early.tokens.install(Session(token: Secret("S1")))
        let error = await #expect(throws: TokenError.self) { try await early.tokens.tokens() }
        #expect(error?.code == .clientKeyMissing && sent.withLock(\.isEmpty))

        let keys = try keySet(home.run("clients", "key", "bank-app").out)
        let assent = try profile.assent(transport: transport, clock: clock)
        #expect(try await assent.tokens.tokens().accessToken == Secret("access"))
        let form = try #require(sent.withLock { $0.first })
        let assertion = try UnverifiedJWS.parse(try #require(form["client_assertion"]))
        let claims = try JWTValidation(issuer: "app", audience: Self.issuer, clock: clock)
            .validate(try assertion.verified(with: keys, algorithms: [.es256]))
        #expect(claims.sub == "app" && form["client_id"] == "app")
    }
}

/// An authorization server that gives tokens to everybody, and keeps the forms.
private struct AnsweringTransport: HTTPTransport {
    let issuer: String
    let forms: Locked<[FormItems]>

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        let url = call.request.url ?? ""
        switch URLText.withoutQuery(url) {
        case "\(issuer)/.well-known/openid-configuration":
            return Self.reply([
                "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
                "token_endpoint": .string("\(issuer)/access_token"),
            ])
        case "\(issuer)/authorize":
            let state = URLText.query(of: url)?[all: "state"].first ?? ""
            let location = "http://127.0.0.1/callback?code=c&state=\(state)"
            return HTTPReply(HTTPResponse(status: .found, headerFields: [.location: location]))
        default:
            let form = try FormEncoding.parse(try await call.body?.collect(upTo: 1 << 16) ?? [])
            forms.withLock { $0.append(form) }
            return Self.reply(["access_token": "access", "token_type": "Bearer", "expires_in": 600])
        }
    }

    private static func reply(_ json: JSONValue) -> HTTPReply {
        HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(json.serializedBytes()))
    }
}
#endif
