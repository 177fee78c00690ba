import AssentCore
import AssentServer
import AssentTesting
import Foundation
import AssentPeers
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent request, as a user, as an installation and as nobody")
struct RequestKindsTests {
    /// A person with a home of their own, in which app.yaml and token.txt are, as the operator has given them.
    struct Newcomer {
        let typist: Typist
        let program: Program

        /// Types a line of a page in a shell in that home.
        func type(_ line: String, _ answers: [String] = []) async throws -> Program.Result {
            typist.catchUp()
            return try await program.type(line, answers)
        }

        var signIn: [String] {
            get throws {
                [typist.world.account.username, typist.world.account.password.reveal(), try typist.code()]
            }
        }

        /// The names of all files that the program has stored.
        var stored: Set<String> {
            get throws { Set(try FileManager.default.subpathsOfDirectory(atPath: program.home)) }
        }

        /// What is in the home beside the program's own files.
        var files: Set<String> {
            get throws {
                Set(try FileManager.default.contentsOfDirectory(atPath: program.home)).subtracting(["state", "config"])
            }
        }
    }

    /// A newcomer, and the token with which as many installations may register.
    static func run(
        count: Int = 1, editing edit: (String) -> String = { $0 }, _ body: (Newcomer) async throws -> Void
    ) async throws {
        try await Typist.run(editing: edit) { typist in
            let token = count == 0 ? nil : try await initialToken(typist, for: count)
            let file = try #require(
                ClientFile.ofApp(endpoints: typist.world.endpoints, configuration: typist.world.configuration))
            let program = try Program(below: typist.program.home + "/newcomer", client: file.yaml)
            try Data(file.yaml.utf8).write(to: URL(fileURLWithPath: program.home + "/app.yaml"))
            if let token { try program.keep(token, in: program.home + "/token.txt") }
            typist.catchUp()
            try await body(Newcomer(typist: typist, program: program))
        }
    }

    private static func initialToken(_ typist: Typist, for count: Int) async throws -> String {
        #expect(try await typist.login().status == 0)
        let bootstrap = try #require(typist.world.endpoints.bootstrapFile)
        #expect(try await typist.program.run("admin", "bootstrap", "--token-file", bootstrap).status == 0)
        let made = try await typist.program.run(
            "admin", "registrations", "token", "--app", InstallationScene.app, "--count", "\(count)")
        #expect(made.status == 0, "\(made.errors)")
        return made.output
    }

    /// The commands of a section of the page, without their remarks.
    private static func commands(of section: String = "At the command line") throws -> [String] {
        let page = try String(contentsOf: World.package.appending(path: "docs/resources.md"), encoding: .utf8)
        let section = try #require(page.components(separatedBy: "\n## \(section)\n").last)
        let block = try #require(section.components(separatedBy: "\n```console\n").dropFirst().first)
        let lines = try #require(block.components(separatedBy: "\n```").first).split(separator: "\n")
        return lines.map { line in
            let command = line.split(separator: "#").first ?? ""
            return command.dropFirst(2).trimmingCharacters(in: .whitespaces)
        }
    }

    @Test("The session that docs/resources.md shows works as it is written")
    func page() async throws {
        let commands = try Self.commands()
        #expect(commands.count == 10 && commands.allSatisfy { $0.hasPrefix("assent ") }, "\(commands)")
        try await Self.run { newcomer in
            for command in commands {
                let answers =
                    command == "assent login"
                    ? try newcomer.signIn : command.contains(" POST ") ? ["1", try newcomer.typist.code()] : []
                let result = try await newcomer.type(command, answers)
                #expect(result.status == 0, "\(command): \(result.output)\(result.errors)")
                switch command {
                case _ where command.contains("GET /status"):
                    #expect(try JSONValue.parse(result.output)["isOpen"] == true)
                case _ where command.contains(" register "): #expect(result.output.contains("Registered as bank-pay~"))
                case _ where command.contains("/app-info"):
                    #expect(try JSONValue.parse(result.output)["name"] == "Bank app")
                case "assent status":
                    #expect(
                        result.output.contains("ana is signed in") && result.output.contains("Registration:  bank-pay~")
                    )
                case _ where command.contains("/greeting"):
                    #expect(try JSONValue.parse(result.output)["greeting"] == "Hello ana")
                case _ where command.contains(" POST "):
                    #expect(result.errors.contains("Amount: 200.00 EUR") && result.output.contains(#""to":"Bob""#))
                case _ where command.contains("--download"):
                    let path = newcomer.program.home + "/accounts.json"
                    let content = try #require(FileManager.default.contents(atPath: path))
                    #expect(try JSONValue.parse(Array(content))["balance"] == "800.00" && result.output.isEmpty)
                    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
                    #expect(mode == 0o600)
                case _ where command.contains(" HEAD "):
                    #expect(result.output.isEmpty && result.errors.contains("HTTP 200"))
                case _ where command.contains("unregister"): #expect(result.output.contains("has ended"))
                default: break
                }
            }
            let late = try await newcomer.type("assent status")
            #expect(late.status == 1 && late.output.contains("Registration:  none yet"), "\(late.output)")
        }
    }

    @Test("41 assent web gives a link to a page that the server lists for the app, and none to another one")
    func web() async throws {
        let page = "https://shop.bank.example/orders"
        let listing = { (file: String) in
            file.replacing(
                "        registration: token\n",
                with: "        registration: token\n        webLinks: [\"\(page)\"]\n")
        }
        try await Self.run(editing: listing) { newcomer in
            let registered = try await newcomer.type("assent register --config app.yaml --token-file token.txt")
            #expect(registered.status == 0, "\(registered.errors)")
            #expect(try await newcomer.type("assent login", try newcomer.signIn).status == 0)
            let made = try await newcomer.type("assent web \(page) --json")
            #expect(made.status == 0, "\(made.errors)")
            let url = try #require(try JSONValue.parse(made.output)["url"]?.string)
            #expect(url.hasPrefix(newcomer.typist.world.endpoints.server + "/UI/Link?id="), "\(url)")
            let other = try await newcomer.type("assent web \(page)/1 --json")
            #expect(other.status != 0 && !other.output.contains("Link?id="), "\(other.output)")
            #expect(other.output.contains("not one that the server lists"), "\(other.output)")
        }
    }

    private static let pin = "0042"

    /// The bank's app remembers users, as the page says.
    static func remembering(_ file: String) -> String {
        let grants = "grantTypes: [authorization_code, refresh_token, client_credentials"
        return OwnDeviceTests.withLogin(file).replacing(
            grants + "]\n",
            with: grants + ", \"urn:ietf:params:oauth:grant-type:jwt-bearer\"]\n"
                + "        implicit: {scopes: [profile]}\n")
    }

    @Test("A user enrols here, signs out, and is known by a PIN or without one, as docs/resources.md shows")
    func remembered() async throws {
        let commands = try Self.commands(of: "Users whom an installation remembers")
        #expect(commands.count == 10 && commands.allSatisfy { $0.hasPrefix("assent ") }, "\(commands)")
        let file = try String(
            contentsOf: World.package.appending(path: "Examples/bank/remembered.yaml"), encoding: .utf8)
        try await Self.run(count: 0, editing: { _ in file }) { newcomer in
            for command in commands {
                var answers: [String] = []
                if command == "assent login" { answers = try newcomer.signIn }
                if command.contains("--here") { answers = [Self.pin, Self.pin] }
                if command.contains("--pin") { answers = [Self.pin] }
                if command.contains(" web ") { answers = [Self.pin, ""] }
                let result = try await newcomer.type(command, answers)
                #expect(result.status == 0, "\(command): \(result.output)\(result.errors)")
                switch command {
                case _ where command.contains(" register "): #expect(result.output.contains("Registered as bank-pay~"))
                case _ where command.contains("/app-info"):
                    #expect(try JSONValue.parse(result.output)["name"] == "Bank app")
                case _ where command.contains(" web "):
                    #expect(result.output.contains("/UI/Link?id=") && result.output.contains("Signed out."))
                case _ where command.contains("--here"):
                    #expect(result.output.contains("This installation remembers ana"), "\(result.output)")
                case _ where command.contains("/accounts"):
                    #expect(try JSONValue.parse(result.output)["balance"] == "1000.00")
                case _ where command.contains("/greeting"):
                    #expect(try JSONValue.parse(result.output)["greeting"] == "Hello ana")
                case _ where command.contains("/status"):
                    #expect(try JSONValue.parse(result.output)["isOpen"] == true)
                case _ where command.contains("login --pin"):
                    #expect(result.output.contains("The PIN of ana is right"), "\(result.output)")
                default: break
                }
            }
            // What opens the greeting does not open the account.
            let implicit = try await newcomer.type("assent request --as implicit GET /accounts")
            #expect(implicit.status == 2 && implicit.errors.contains("403"), "\(implicit.errors)")
            // Nothing of these logins is kept.
            let status = try await newcomer.type("assent status")
            #expect(status.status == 1, "\(status.output)")
        }
    }

    @Test("Ctrl-C at assent web signs out who has typed a PIN, as Enter does")
    func interrupted() async throws {
        let file = try String(
            contentsOf: World.package.appending(path: "Examples/bank/remembered.yaml"), encoding: .utf8)
        try await Self.run(count: 0, editing: { _ in file }) { newcomer in
            for (line, answers) in [
                ("assent register --config app.yaml", []), ("assent login", try newcomer.signIn),
                ("assent device enroll --here", [Self.pin, Self.pin]), ("assent logout", []),
            ] {
                let result = try await newcomer.type(line, answers)
                try #require(result.status == 0, "\(line): \(result.errors)")
            }
            newcomer.typist.catchUp()
            let (home, terminal) = (newcomer.program.home, try PseudoTerminal())
            let process = try SpawnedProcess(
                BuiltProgram.beside("assent").path, ["web", "https://shop.bank.example/orders"],
                environment: [
                    "HOME": home, "XDG_STATE_HOME": home + "/state", "XDG_CONFIG_HOME": home + "/config",
                    "PATH": "/usr/bin:/bin", "TERM": "dumb", "ASSENT_LEAST_SECONDS": "\(Patience.seconds)",
                ], at: terminal)
            try await terminal.wait(for: "PIN of ana: ")
            newcomer.typist.catchUp()
            terminal.type(Self.pin + "\n")
            try await terminal.wait(for: "Press Enter")
            newcomer.typist.catchUp()
            terminal.type("\u{3}")
            #expect(await process.ended() == 0, "\(terminal.text)")
            try await terminal.wait(for: "Signed out.")
        }
    }

    @Test("A wrong PIN costs a try and is told; who is not remembered, and scopes that are not for this, are refused")
    func wrongPIN() async throws {
        try await Self.run(editing: Self.remembering) { newcomer in
            func told(_ line: String, _ status: Int32, _ words: String, typing answers: [String] = []) async throws {
                let result = try await newcomer.type(line, answers)
                #expect(result.status == status, "\(line): \(result.output)\(result.errors)")
                #expect(result.errors.contains(words), "\(line): \(result.errors)")
            }
            let registered = try await newcomer.type("assent register --config app.yaml --token-file token.txt")
            #expect(registered.status == 0, "\(registered.errors)")
            try await told("assent request --as implicit GET /greeting", 1, "Nobody is remembered here")
            try await told("assent login --pin", 1, "assent device enroll --here", typing: [Self.pin])
            try await told("assent device enroll --here", 1, "Sign in first: assent login", typing: [Self.pin])
            #expect(try await newcomer.type("assent login", newcomer.signIn).status == 0)
            #expect(try await newcomer.type("assent device enroll --here", [Self.pin, Self.pin]).status == 0)
            #expect(try await newcomer.type("assent logout").status == 0)

            let second = try await newcomer.type("assent request --pin GET /accounts", ["9999", Self.pin])
            #expect(second.status == 0 && second.errors.contains("The PIN is wrong. Tries left: "), "\(second.errors)")
            try await told("assent request --pin GET /accounts", 1, "Tries left: ", typing: ["9999"])
            try await told("assent web https://shop.bank.example/ --json", 1, "without --json")
            try await told("assent web https://shop.bank.example/", 1, "Tries left: ", typing: ["9999"])
            try await told("assent login --pin --username bob", 1, "No user with this name", typing: [Self.pin])
            try await told("assent request --as implicit GET /accounts", 2, "The server answered 403")
            try await told("assent request --as implicit GET /greeting --scope accounts", 2, "10001")

            // It is one of the device's containers.
            let listed = try await newcomer.type("assent device list")
            let id = try #require(try JSONValue.parse(listed.output)["container"]?.string, "\(listed.errors)")
            #expect(try await newcomer.type("assent device remove -- \(id)").status == 0)
            try await told("assent request --as implicit GET /greeting", 1, "Nobody is remembered here")
        }
    }

    @Test("A sign-in that leaves nothing behind sends one request, and is gone; the server must allow it")
    func stateless() async throws {
        let types = "        grantTypes: [authorization_code, refresh_token, client_credentials]\n"
        func edit(_ file: String) -> String {
            file.replacing(types, with: types + "        stateless: true\n")
                .replacing("accepts: [user, implicit]", with: "accepts: [user, implicit, stateless]")
        }
        let line = "assent login --config app.yaml --stateless --then GET /greeting"
        try await Self.run(editing: edit) { newcomer in
            let early = try await newcomer.type(line, ["ana"])
            #expect(early.status != 0 && early.errors.contains("9002"), "\(early.errors)")
            let registered = try await newcomer.type("assent register --config app.yaml --token-file token.txt")
            #expect(registered.status == 0, "\(registered.errors)")
            let before = try newcomer.stored
            let secrets = try await newcomer.type("assent vault list")
            let result = try await newcomer.type(line, newcomer.signIn)
            #expect(result.status == 0, "\(result.errors)")
            #expect(try JSONValue.parse(result.output)["greeting"] == "Hello ana")
            #expect(try newcomer.stored == before)
            let secretsAfter = try await newcomer.type("assent vault list")
            #expect(secrets.status == 0 && secretsAfter.output == secrets.output, "\(secretsAfter.output)")
            let status = try await newcomer.type("assent status")
            #expect(status.status == 1, "\(status.output)")
        }
        try await Self.run { newcomer in
            let registered = try await newcomer.type("assent register --config app.yaml --token-file token.txt")
            #expect(registered.status == 0, "\(registered.errors)")
            let refused = try await newcomer.type(line, ["ana"])
            #expect(refused.status != 0 && refused.errors.contains("9034"), "\(refused.errors)")
        }
    }

    @Test("A token of one kind opens nothing of another, and the command says what it was and what to do")
    func otherKinds() async throws {
        try await Self.run { newcomer in
            func told(_ line: String, _ status: Int32, _ words: String...) async throws {
                let before = try newcomer.files
                let result = try await newcomer.type(line)
                #expect(result.status == status, "\(line): \(result.output)\(result.errors)")
                for text in words { #expect(result.errors.contains(text), "\(line): \(result.errors)") }
                #expect(try newcomer.files == before)
            }
            try await told("assent request --as nobody GET /app-info --config app.yaml", 1, "The server answered 401")
            try await told(
                "assent request --as device GET /app-info --config client.yaml --profile other", 2,
                "The server refused", "9008")
            let registered = try await newcomer.type("assent register --config app.yaml --token-file token.txt")
            #expect(registered.status == 0, "\(registered.errors)")
            try await told("assent request --as device GET /accounts", 2, "The server answered 403", "see --as")
            try await told("assent request --as device GET /app-info --scope unknown", 2, "10001", "Ask for scopes")
            try await told("assent request GET /accounts", 1, "Sign in first: assent login", "9010")
            try await told("assent request GET https://elsewhere.example/x", 1, "10101", "Name the host")
            try await told("assent request GET /../admin", 1, "10015")
            try await told(
                "assent request --as nobody GET /status -H 'Authorization: x'", 1, "10019", "Leave the field out")
            try await told("assent request --as nobody GET /none --download x", 1, "Nothing was downloaded")
            try await told("assent request --as nobody POST /status --multipart a=@none", 1, "none cannot be read")
            #expect(try await newcomer.type("assent login", newcomer.signIn).status == 0)
            try await told("assent request GET /app-info", 2, "The server answered 403", "(user)")
            let ok = try await newcomer.type("assent request --as nobody GET /status --param a=b --param a=c")
            #expect(ok.status == 0, "\(ok.errors)")

            // The operator removes the installation.
            let listed = try await newcomer.typist.program.run("admin", "registrations", "list")
            let id = try #require(try JSONValue.parse(listed.output)["clientId"]?.string)
            #expect(try await newcomer.typist.program.run("admin", "registrations", "end", id).status == 0)
            try await told("assent request --as device GET /app-info", 1, "assent register", "9002")
        }
    }

    @Test("A client whose installations do not register has no calls of its own, and is told so")
    func unregistered() async throws {
        try await Typist.run { typist in
            let result = try await typist.program.run(
                "request", "--as", "device", "GET", "/app-info", "--config", typist.program.clientFile)
            #expect(result.status == 1 && result.errors.contains("assent register"), "\(result.errors)")
            let status = try await typist.program.run(
                "request", "--as", "nobody", "GET", "/status", "--config", typist.program.clientFile)
            #expect(status.status == 0 && status.output.contains("true"), "\(status.errors)")
        }
    }

    @Test("The program of the article calls for nobody, for the installation and for its user")
    func article() async throws {
        try await Self.run { newcomer in
            let typist = newcomer.typist
            let running = try Program.Running(
                Program.Running.limits + [BuiltProgram.beside("FirstResource").path]
                    + DemoCommand.firstCall(typist.world.endpoints) + [newcomer.program.home + "/first.key"],
                typing: true, environment: ["HOME": newcomer.program.home, "PATH": "/usr/bin:/bin"])
            let token = try String(contentsOfFile: newcomer.program.home + "/token.txt", encoding: .utf8)
            try running.type([token.trimmingCharacters(in: .whitespacesAndNewlines)] + newcomer.signIn)
            #expect(try await running.line(with: "The balance is").contains("1000.00"))
            try running.type(["yes", try typist.code()])
            try running.endInput()
            let result = await running.result()
            #expect(result.status == 0, "\(result)")
            for text in [
                "status: 200.", "app's data: 200.", "generic 10106", "fetchAnonymousResource 10101", "greeting: 200.",
                "The balance is 1000.00.", "Amount: 200.00 EUR", "Paid.", "Unregistered.",
            ] { #expect(result.output.contains(text), "\(text): \(result.output)") }
        }
    }
}
