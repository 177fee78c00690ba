import ArgumentParser
import ArgumentParser
import Assent
import AssentPeers
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI

@Suite("What the commands take")
struct CommandOptionTests {
    private func request(_ arguments: String...) throws -> RequestCommand {
        try RequestCommand.parse(["POST", "https://api.example/"] + arguments)
    }

    @Test("--version says the version")
    func version() throws {
        let told = try VaultCommandTests.Home().run("--version")
        #expect(told.status == 0 && told.out.contains("0.1.0"), "\(told.err)")
    }

    @Test("Options that name a file are completed with files")
    func completion() throws {
        let script = try VaultCommandTests.Home().run("--generate-completion-script", "zsh")
        #expect(script.status == 0)
        let all = script.out.split(separator: "\n")
        for option in [
            "--config", "--data-file", "--password-file", "--passphrase-file", "--token-file", "--key-file",
        ] {
            let lines = all.filter { $0.contains("\(option)[") || $0.contains("{\(option),") }
            #expect(!lines.isEmpty, "\(option)")
            for line in lines { #expect(line.contains("_files"), "\(line)") }
        }
    }

    @Test(
        "What tests are told of a refusal without starting the program is what the program says, with its exit status",
        arguments: [
            ["vault", "list", "--store", "x"], ["vault", "rekey", "--to", "nothing"],
            ["clients", "key", "a", "--show", "--replace"], ["request", "GET", "/a", "--json", "--include"],
            ["request", "GET"], ["login", "--stateless", "--then"], ["device", "enroll"],
            ["admin", "devices", "change", "BLOCK", "--container", "a"], ["logn"],
        ])
    func program(arguments: [String]) throws {
        let home = try VaultCommandTests.Home()
        let (told, expected) = (try home.run(arguments), try home.refusal(arguments))
        #expect(told.status == 64 && told.out.isEmpty && !told.err.isEmpty, "\(told)")
        #expect(expected.status == told.status && expected.out == told.out, "\(expected)")
        #expect(expected.err == told.err)
    }

    @Test(
        "A file that cannot be read is a failure with the reason, and no lesson in usage",
        arguments: [
            ["request", "POST", "https://localhost/", "--data-file", "/nowhere/body"],
            ["request", "POST", "https://localhost/", "--data-file", "/tmp"],
            ["admin", "hash-password", "--password-file", "/nowhere/password"],
            ["vault", "list", "--passphrase-file", "/nowhere/passphrase"],
            ["vault", "rekey", "--new-passphrase-file", "/nowhere/passphrase"],
            ["vault", "check", "--passphrase-fd", "63"],
        ])
    func unreadable(arguments: [String]) async throws {
        let home = try VaultCommandTests.Home()
        try await home.fill()
        let told = try home.run(arguments)
        #expect(told.status == 1 && told.err.contains("cannot be read"), "\(told.err)")
        #expect(!told.err.contains("Usage:") && !told.err.contains("--help"), "\(told.err)")
    }

    @Test("serve takes each level of the log that its help names, and its help and its refusal name each that it takes")
    func levels() throws {
        let help = AssentCommand.helpMessage(for: ServeCommand.self, columns: 200)
        let refusal = try VaultCommandTests.Home().refusal(["serve", "--config", "a.yaml", "--log-level", "loud"])
        for level in ["trace", "debug", "info", "notice", "warning", "error", "critical"] {
            #expect(try ServeCommand.parse(["--config", "a.yaml", "--log-level", level]).logLevel == level)
            #expect(help.contains("\(level),") || help.contains("\(level)."), "\(help)")
            #expect(refusal.err.contains(level), "\(refusal.err)")
        }
    }

    @Test("A secret is one line of a bounded length", arguments: ["/dev/null", "/dev/zero"])
    func secretFile(path: String) throws {
        let told = try VaultCommandTests.Home().run("vault", "list", "--passphrase-file", path)
        #expect(told.status == 1 && told.err.contains("one line of 1 to 1024 bytes"), "\(told.err)")
    }

    @Test(
        "What does nothing, or contradicts something else, is refused",
        arguments: [
            ["request", "GET", "https://a.example/", "--content-type", "text/plain"],
            ["request", "GET", "https://a.example/", "--data", "{"],
            ["request", "GET", "https://a.example/", "--data", "{}", "--data-file", "x"],
            ["request", "GET", "https://a.example/", "-H", "no field"],
            ["request", "GET", "https://a.example/", "-H", "a b: c"],
            [
                "request", "GET", "https://a.example/", "--data", "{}", "--content-type", "a/b", "-H",
                "Content-Type: c/d",
            ],
            ["request", "GET", "https://a.example/", "--json", "{}"],
            ["login", "--pin", "--browser"], ["login", "--pin", "--dpop"], ["login", "--pin", "--password-file", "a"],
            ["login", "--pin", "--journey", "Login"], ["login", "--timeout", "5"],
            ["login", "--stateless"], ["login", "--then", "GET", "/a"], ["login", "--stateless", "--then"],
            ["login", "--stateless", "--then", "GET"], ["login", "--stateless", "--then", "TRACE", "/a"],
            ["login", "--stateless", "--pin", "--then", "GET", "/a"],
            ["login", "--stateless", "--browser", "--then", "GET", "/a"],
            ["login", "--stateless", "--dpop", "--then", "GET", "/a"],
            ["login", "--stateless", "--json", "--then", "GET", "/a"],
            ["login", "--stateless", "--then", "GET", "/a", "--as", "device"],
            ["login", "--stateless", "--then", "GET", "/a", "--pin"],
            ["login", "--stateless", "--then", "GET", "/a", "--ask", "t"],
            ["login", "--stateless", "--then", "GET", "/a", "--config", "other.yaml"],
            ["login", "--stateless", "--then", "GET", "/a", "--profile", "other"],
            ["login", "--password-file", "a", "--password-fd", "0"],
            ["demo", "--minutes", "5"], ["vault", "list", "--profile", "a", "--directory", "b"],
            ["vault", "list", "--passphrase-file", "a", "--passphrase-fd", "0"], ["admin", "audit", "--limit", "0"],
            ["admin", "reports", "--limit", "0"], ["admin", "reports", "--since", "lately"],
            ["doctor", "--profile", "a", "--config", "/nowhere/assent.yaml"],
        ])
    func refused(arguments: [String]) throws {
        let told = try VaultCommandTests.Home().refusal(arguments)
        #expect(told.status == 64 && !told.err.isEmpty, "\(arguments): \(told.status) \(told.err)")
    }

    @Test(
        "A command about a device that lacks something, or names what there is not, is refused before anybody is asked",
        arguments: [
            ["device", "enroll"], ["device", "enroll", "--here", "CODE"],
            ["device", "enroll", "--here", "--qr-file", "qr.txt"],
            ["device", "enroll", "--here", "--issuer", "https://a.example/am/signing/realms/root"],
            ["device", "pin", "unlock"], ["device", "pin", "unlock", "--container"], ["device", "pin", "show", "a"],
            ["device", "pin", "unlock", "--container", "a", "--slot", "pin"],
            ["device", "pin", "change", "--slot", "SIGNING"], ["device", "pin", "change", "--slot", ""],
            ["device", "pin", "change", "--pin", "0042"], ["transactions", "sign"],
            ["transactions", "sign", "A text", "and another"], ["transactions", "sign", "-a text"],
            ["admin", "devices", "list"], ["admin", "devices", "list", "ana", "ben"], ["admin", "devices", "change"],
            ["admin", "devices", "change", "block"], ["admin", "devices", "change", "--container", "a"],
            ["admin", "devices", "change", "BLOCK", "--container", "a"],
            ["admin", "devices", "change", "block", "unblock", "--container", "a"],
            ["admin", "devices", "change", "wipe", "--container", "a", "--slot", "pin"],
            ["admin", "devices", "change", "block", "--container", "a", "--slot", "otp"],
        ])
    func devices(arguments: [String]) throws {
        let told = try VaultCommandTests.Home().refusal(arguments)
        #expect(told.status == 64 && !told.err.isEmpty && told.out.isEmpty, "\(arguments): \(told)")
    }

    @Test("An id is an argument or an option, once; one that begins with a hyphen stands behind --")
    func ids() throws {
        for arguments in [["a"], ["--container", "-a"], ["--", "-a"]] {
            let remove = try DeviceCommand.Remove.parse(arguments)
            let unlock = try DeviceCommand.PIN.Unlock.parse(arguments)
            let expected = arguments == ["a"] ? "a" : "-a"
            #expect(remove.container.value == expected && unlock.container.value == expected, "\(arguments)")
            let change = try AdminCommand.Devices.Change.parse(["block"] + arguments)
            #expect(change.container.value == expected, "\(arguments)")
        }
        #expect(try AdminCommand.Audit.parse(["--transaction", "-a"]).transaction == "-a")
        #expect(try PayloadKeysCommand.Withdraw.parse(["--", "-a"]).kid == "-a")
        for arguments in [["t"], ["--transaction", "t"], ["--", "t"]] {
            _ = try TransactionsCommand.Approve.parse(arguments)
            _ = try TransactionsCommand.Decline.parse(arguments)
            _ = try DeviceCommand.Evidence.parse(arguments)
        }
        for refused in [["t", "--transaction", "t"], ["t", "u"], ["-t"]] {
            #expect(throws: (any Error).self, "\(refused)") { try TransactionsCommand.Show.parse(refused) }
            #expect(throws: (any Error).self, "\(refused)") { try DeviceCommand.Evidence.parse(refused) }
        }
        #expect(throws: (any Error).self) { try DeviceCommand.Evidence.parse([]) }
        for command in [DeviceCommand.Remove.self, DeviceCommand.PIN.Unlock.self] as [any ParsableCommand.Type] {
            #expect(throws: (any Error).self) { try command.parse(["a", "--container", "a"]) }
        }
    }

    @Test("Each command that does something prints it as JSON for a script")
    func json() throws {
        let commands: [[String]] = [
            ["device", "invite"], ["device", "enroll", "A"], ["device", "scan", "A"], ["device", "renew"],
            ["device", "rename", "A"], ["device", "remove", "A"], ["device", "pin", "change"],
            ["device", "pin", "unlock", "A"], ["users", "lock", "ana"], ["users", "unlock", "ana"],
            ["users", "password", "ana"], ["admin", "roles", "ana", "auditor"],
            ["admin", "devices", "change", "block", "A"], ["clients", "key", "a"],
        ]
        for command in commands {
            #expect(throws: Never.self, "\(command)") { try AssentCommand.parseAsRoot(command + ["--json"]) }
        }
    }

    @Test("A user's roles are taken where somebody says so, and not because none was named")
    func roles() throws {
        let given = try AdminCommand.Roles.parse(["ana", "auditor", "pep"])
        #expect(given.roles == ["auditor", "pep"] && !given.none)
        let taken = try AdminCommand.Roles.parse(["ana", "--none"])
        #expect(taken.roles.isEmpty && taken.none)
        for refused in [["ana"], ["ana", "auditor", "--none"]] {
            #expect(throws: (any Error).self, "\(refused)") { try AdminCommand.Roles.parse(refused) }
        }
    }

    @Test("A passphrase for a vault that has none is refused: somebody believes that it protects")
    func uselessPassphrase() async throws {
        let home = try VaultCommandTests.Home()
        try await home.fill()
        let file = try home.file("passphrase", "correct horse\n")
        for command in [["vault", "list"], ["vault", "check"], ["vault", "rekey"]] {
            let told = try home.run(command + ["--passphrase-file", file])
            #expect(told.status == 1 && told.err.contains("assent vault rekey --to passphrase"), "\(told.err)")
        }
        #expect(try home.run("vault", "list").status == 0)
    }

    @Test("token --proof takes a method and a URL, and --nonce belongs to it")
    func proof() throws {
        let command = try TokenCommand.parse(["--proof", "get", "https://api.example/a", "--nonce", "n", "--json"])
        #expect(command.proof == ["get", "https://api.example/a"] && command.nonce == "n" && command.json)
        let refused: [[String]] = [
            ["--proof"], ["--proof", "GET"], ["--proof", "GET", "https://a.example/", "more"],
            ["--proof", "G T", "https://a.example/"], ["--nonce", "n"], ["GET", "https://a.example/"],
        ]
        for arguments in refused {
            #expect(throws: (any Error).self, "\(arguments)") { try TokenCommand.parse(arguments) }
        }
        #expect(try LoginCommand.parse(["--dpop", "--browser"]).dpop && !LoginCommand.parse([]).dpop)
    }

    @Test("web takes a page, and --pin with a user; a script cannot wait for the end of such a login")
    func web() throws {
        let command = try WebCommand.parse(["--pin", "--username", "ana", "https://shop.example/"])
        #expect(command.pin && command.username == "ana" && command.url == "https://shop.example/")
        let page = "https://shop.example/"
        for arguments in [[], [page, "--username", "ana"], [page, "--pin", "--json"]] {
            #expect(throws: (any Error).self, "\(arguments)") { try WebCommand.parse(arguments) }
        }
    }

    @Test("--data is JSON, sent byte for byte, unless another type is named")
    func data() async throws {
        let json = try request("--data", #"{"a": 1 }"#).request()
        #expect(json.headers[.contentType] == "application/json" && json.body?.inMemory == Array(#"{"a": 1 }"#.utf8))
        let form = try request("--data", "a=1", "--content-type", "application/x-www-form-urlencoded").request()
        #expect(form.headers[.contentType] == "application/x-www-form-urlencoded")
        #expect(form.body?.inMemory == Array("a=1".utf8))
        #expect(try request().request().body == nil)
    }

    @Test("Header fields go along, several of one name too, and may name the media type of a file")
    func headers() throws {
        let home = try VaultCommandTests.Home()
        let file = try home.file("body", "<a/>")
        let call = try request(
            "--data-file", file, "-H", "Accept: text/plain", "--header", "Accept:text/html", "-H",
            "Content-Type: text/xml"
        ).request()
        #expect(call.headers[values: .accept] == ["text/plain", "text/html"])
        #expect(call.headers[.contentType] == "text/xml" && call.body?.inMemory == Array("<a/>".utf8))
        #expect(try request("--data-file", file).request().headers[.contentType] == "application/octet-stream")
    }

    @Test("Looking at a file changes nothing; only what has worked is kept")
    func kept() throws {
        let home = try VaultCommandTests.Home()
        let places = Places(environment: [
            "HOME": home.directory.path, "XDG_CONFIG_HOME": home.directory.appending(path: "c").path,
        ])
        let file = try home.file(
            "client.yaml",
            "server: https://a.example/am\nclient: {id: a, redirectURI: 'http://127.0.0.1/callback', scopes: [openid]}\n"
        )
        let profile = try ClientProfile.load(config: file, name: "default", places: places)
        #expect(!FileManager.default.fileExists(atPath: places.configurationFile(profile: "default")))
        try profile.keep()
        #expect(try ClientProfile.load(config: nil, name: "default", places: places).file == profile.file)
    }

    @Test("status says what it knows, in words and for scripts, and what it does not know")
    func status() throws {
        var file = ClientFile(
            server: "https://a.example/am", realm: "alpha", cookieName: "c", clientID: "a", redirectURI: "r",
            scopes: [],
            journey: "Login", resources: [], authority: nil, pins: [])
        file.realm = "alpha"
        let end = Date(timeIntervalSince1970: 1_800_000_000)
        func made(
            _ session: SignInStatus.SessionState, tokens: Bool = true, refresh: Bool = true
        ) -> SignInStatus {
            SignInStatus(
                user: "ana\u{1B}", session: session, scopes: ["openid"], accessTokenEnd: end, hasTokens: tokens,
                hasRefreshToken: refresh)
        }
        let alive = made(.alive(idle: end, end: end))
        let text = alive.lines(file).joined(separator: "\n")
        #expect(alive.isSignedIn && text.contains("2027-01-15T08:00:00Z unless it is used"))
        #expect(!text.contains("\u{1B}"))
        #expect(alive.json(file, profile: "p")["session"]?["expires_at"] == .integer(1_800_000_000))
        let ended = made(.ended, refresh: false)
        #expect(!ended.isSignedIn && ended.lines(file).joined().contains("assent login"))
        #expect(ended.json(file, profile: "p")["signedIn"] == false)
        // With tokens that outlive the session somebody is signed in. With a browser's that have ended nobody is.
        let outlived = made(.ended)
        #expect(outlived.isSignedIn && outlived.lines(file).first?.contains("is signed in") == true)
        #expect(outlived.lines(file).joined().contains("Approvals, devices and administration need one"))
        let browser = made(.none, tokens: false, refresh: false)
        #expect(!browser.isSignedIn && browser.lines(file).first?.contains("was signed in") == true)
        #expect(!browser.lines(file).joined().contains("none yet"))
        let unknown = made(.unknown("no answer"))
        #expect(unknown.isSignedIn && unknown.lines(file).joined().contains("did not say"))
        #expect(made(.none).lines(file).joined().contains("in a browser"))
    }
}
