import AssentCore
import AssentOTP
import AssentServer
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentCLI

@Suite("A device on the command line", .timeLimit(.minutes(3)))
struct DeviceTests {
    /// A world with devices, a user who has signed in, and a device with a home of its own.
    static func run(
        with more: String = "", _ body: (_ world: DemoWorld, _ user: Program, _ device: Program) async throws -> Void
    ) async throws {
        let directory = NSTemporaryDirectory() + "/assent-device-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var sources = try await World.sources()
        let example = try String(contentsOfFile: sources.configurationFile, encoding: .utf8)
        sources.configurationFile = directory + "/assent.yaml"
        let name = try #require(example.firstRange(of: "      name: Bank of Example\n"))
        try (example[..<name.upperBound] + more + example[name.upperBound...]).write(
            toFile: sources.configurationFile, atomically: false, encoding: .utf8)
        // Calls wait for what happens, and look again after a while.
        let clock = SystemClock()
        let world = try await DemoWorld.start(sources: sources, clock: clock, logger: CollectingLog().logger)
        do {
            let file = try #require(ClientFile(endpoints: world.endpoints, configuration: world.configuration)).yaml
            let user = try Program(below: directory + "/user", client: file)
            let device = try Program(below: directory + "/device", client: file)
            let code = try TOTP(secret: world.account.totpSeed).code(at: clock.now)
            let login = try await user.run(
                "login", "--config", user.clientFile,
                typing: [world.account.username, world.account.password.reveal(), code])
            try #require(login.status == 0, "\(login.errors)")
            try await body(world, user, device)
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    @Test("Enrolled with a code and typed digits, it signs a payment; its evidence is judged when the server is gone")
    func story() async throws {
        try await Self.run { world, user, device in
            let here = ["--config", device.clientFile]
            let inviting = try user.start(["device", "invite"], typing: true)
            let line = try await inviting.line(with: "assent device enroll")
            let code = try #require(line.split(separator: " ").last.map(String.init))
            let enrolled = try await device.start(["device", "enroll", code, "--name", "A laptop"] + here).result()
            try #require(enrolled.status == 0, "\(enrolled.errors)")
            let digits = try #require(enrolled.output.firstMatch(of: /([0-9]{4}) ([0-9]{4})/)?.output)
            try inviting.type(["0000 0000", "\(digits.1) \(digits.2)"])
            let invited = await inviting.result()
            #expect(invited.status == 0 && invited.output.contains("is enrolled"), "\(invited.errors)")
            #expect(invited.errors.contains("The server says no"))

            let paying = try user.start([
                "request", "POST", "\(world.endpoints.gateway ?? "")/transfers", "--data",
                #"{"to":"Bob","amount":"200.00","currency":"EUR"}"#,
            ])
            let number = try #require(
                try await paying.errorLine(with: "Number").firstMatch(of: /Number: ([0-9]{2})/)?.output.1)
            let listening = try device.start(["device", "listen", "--once"] + here, typing: true)
            try listening.type(["Approve", String(number)])
            let signed = await listening.result()
            #expect(signed.status == 0, "\(signed.errors)")
            for text in ["Confirm transfer", "200.00 EUR", "Bob"] { #expect(signed.output.contains(text)) }
            let paid = await paying.result()
            #expect(paid.status == 0 && paid.output.contains(#""amount":"200.00""#), "\(paid.errors)")

            let txn = try #require(signed.output.firstMatch(of: /transaction (\S+)\./)?.output.1)
            let evidence = try await user.run("device", "evidence", "--transaction", String(txn))
            try #require(evidence.status == 0, "\(evidence.errors)")
            await world.stop()
            try await verify(evidence.output, device)
        }
    }

    private static func enrol(_ user: Program, _ device: Program, _ options: [String] = []) async throws {
        let inviting = try user.start(["device", "invite"], typing: true)
        let line = try await inviting.line(with: "assent device enroll")
        let code = try #require(line.split(separator: " ").last.map(String.init))
        let enrolled = try await device.start(
            ["device", "enroll", code, "--config", device.clientFile] + options
        ).result()
        try #require(enrolled.status == 0, "\(enrolled.errors)")
        let digits = try #require(enrolled.output.firstMatch(of: /([0-9]{4}) ([0-9]{4})/)?.output)
        try inviting.type(["\(digits.1)\(digits.2)"])
        try #require(await inviting.result().status == 0)
    }

    private static func pay(_ user: Program, _ world: DemoWorld) throws -> [String] {
        [
            "request", "POST", "\(world.endpoints.gateway ?? "")/transfers", "--data",
            #"{"to":"Bob","amount":"200.00","currency":"EUR"}"#,
        ]
    }

    @Test("Transactions are listed, shown, approved and declined one by one")
    func oneByOne() async throws {
        try await Self.run { world, user, device in
            try await Self.enrol(user, device)
            func transactions(_ words: String..., typing: [String] = []) async throws -> Program.Result {
                let running = try device.start(
                    ["transactions"] + words + ["--config", device.clientFile], typing: !typing.isEmpty)
                if !typing.isEmpty { try running.type(typing) }
                return await running.result()
            }
            let empty = try await transactions("list")
            #expect(empty.status == 0 && empty.output.contains("No transaction is open"), "\(empty.errors)")
            #expect(try await transactions("approve").status == 2)

            let paying = try user.start(try Self.pay(user, world))
            let number = try #require(
                try await paying.errorLine(with: "Number").firstMatch(of: /Number: ([0-9]{2})/)?.output.1)
            let list = try await transactions("list", "--wait", "20", "--json")
            let listed = try JSONValue.parse(list.output)
            #expect(listed["title"]?.string == "Confirm transfer" && list.output.contains("200.00 EUR"))
            let txn = try #require(listed["transaction"]?.string)
            let shown = try await transactions("show", "--transaction", txn)
            #expect(shown.output.contains("200.00 EUR") && shown.output.contains("accept"), "\(shown.errors)")
            #expect(try await transactions("approve", "--transaction", "nothing").status == 2)
            let nothing = try await transactions("approve", typing: ["2"])
            #expect(nothing.status == 2 && nothing.errors.contains("Nothing was signed"))
            let signed = try await transactions("approve", "--number", String(number), "--json", typing: ["1"])
            #expect(signed.status == 0, "\(signed.errors)")
            #expect(try JSONValue.parse(signed.output)["effect"]?.string == "approve")
            let paid = await paying.result()
            #expect(paid.status == 0, "\(paid.errors)")

            let again = try user.start(try Self.pay(user, world))
            _ = try await again.errorLine(with: "Number")
            let declined = try await transactions("decline", "--reason", "Not now")
            #expect(declined.status == 0 && declined.output.contains("Declined"), "\(declined.errors)")
            #expect(await again.result().status == 2)
        }
    }

    @Test("A device's keys are under a passphrase where the user chose that")
    func passphrase() async throws {
        try await Self.run { world, user, device in
            let secret = device.home + "/secret"
            try Data("a passphrase of its own\n".utf8).write(to: URL(fileURLWithPath: secret))
            try await Self.enrol(user, device, ["--keys", "passphrase", "--passphrase-file", secret])
            let here = ["--config", device.clientFile, "--passphrase-file", secret]
            let listed = try await device.start(["device", "list"] + here).result()
            #expect(listed.status == 0 && listed.output.contains("container"), "\(listed.errors)")
            let moved = try await device.start(["device", "enroll", "x", "--keys", "key-file"] + here).result()
            #expect(moved.status == 1 && moved.errors.contains("Keys cannot move"), "\(moved.errors)")
            try Data("another\n".utf8).write(to: URL(fileURLWithPath: secret))
            #expect(try await device.start(["device", "list"] + here).result().status == 1)
        }
    }

    @Test("A device that was written in Python from the protocol's pages alone enrols, signs a payment and verifies")
    func secondImplementation() async throws {
        try await Self.run { world, user, device in
            let inviting = try user.start(["device", "invite"], typing: true)
            let line = try await inviting.line(with: "assent device enroll")
            let code = try #require(line.split(separator: " ").last.map(String.init))
            let issuer = world.endpoints.server + "/signing/realms/root/realms/alpha"
            let authority = try #require(world.endpoints.authorityFile)
            let state = ["--state", device.home + "/state.json", "--ca", authority]
            func python(_ words: String...) async throws -> String { try await Self.python(["device"] + state + words) }
            let enrolled = try await python("enrol", "--code", code, "--iss", issuer)
            let digits = try #require(enrolled.firstMatch(of: /([0-9]{4}) ?([0-9]{4})/)?.output)
            try inviting.type(["\(digits.1)\(digits.2)"])
            #expect(await inviting.result().status == 0)

            let paying = try user.start([
                "request", "POST", "\(world.endpoints.gateway ?? "")/transfers", "--data",
                #"{"to":"Bob","amount":"200.00","currency":"EUR"}"#,
            ])
            let number = try #require(
                try await paying.errorLine(with: "Number").firstMatch(of: /Number: ([0-9]{2})/)?.output.1)
            let txn = try #require(try await python("list", "--wait", "20").firstMatch(of: /[A-Za-z0-9_-]{22}/)?.output)
            // An id may begin with a hyphen.
            let document = try await python("fetch", "--", String(txn))
            #expect(document.contains("200.00 EUR") && document.contains("Bob"))
            _ = try await python("decide", "--number", String(number), "--", String(txn), "accept")
            let paid = await paying.result()
            #expect(paid.status == 0, "\(paid.errors)")

            let evidence = try await user.run("device", "evidence", "--transaction", String(txn))
            try #require(evidence.status == 0, "\(evidence.errors)")
            await world.stop()
            let file = device.home + "/bundle.json"
            try Data(evidence.output.utf8).write(to: URL(fileURLWithPath: file))
            let identity = try #require(try JSONValue.parse(evidence.output)["identity"]?.array?.first)
            let key = device.home + "/identity.json"
            try Data(identity.serialized().utf8).write(to: URL(fileURLWithPath: key))
            #expect(try await Self.python(["verify", file, "--trust", key]).contains("200.00 EUR"))
            try await verify(evidence.output, device)
        }
    }

    private static func python(_ words: [String]) async throws -> String {
        let tsp = World.package.appendingPathComponent("Tests/Signing/tsp").path
        let finished = try await offPool { try FinishedProcess.run("/usr/bin/python3", [tsp] + words) }
        try #require(finished.status == 0, "\(words): \(finished.text) \(finished.complaints)")
        return finished.text
    }

    private func verify(_ bundle: String, _ program: Program) async throws {
        let (file, key) = (program.home + "/bundle.json", program.home + "/identity.json")
        func write(_ text: String, _ path: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }
        try write(bundle, file)
        let identity = try #require(try JSONValue.parse(bundle)["identity"]?.array?.first)
        try write(identity.serialized(), key)
        let judged = try await program.run("verify", file, "--trust", key)
        #expect(judged.status == 0, "\(judged.output)\(judged.errors)")
        #expect(judged.output.contains("200.00 EUR") && judged.output.contains("Bob"))
        let report = try JSONValue.parse(try await program.run("verify", file, "--trust", key, "--json").output)
        #expect(report["contradicted"]?.array?.isEmpty == true && report["established"]?.array?.isEmpty == false)
        #expect(try await program.run("verify", file).status == 64)
        let stranger = Base64URL.encode(SystemRandom().bytes(32))
        #expect(try await program.run("verify", file, "--trust", stranger).status == 2)
        // A character of the decision's signature.
        let decision = try #require(try JSONValue.parse(bundle)["transactions"]?.array?.first?["decision"]?.string)
        let changed = decision.dropLast(4) + (decision.hasSuffix("AAAA") ? "BBBB" : "AAAA")
        try write(bundle.replacing(decision, with: changed), file)
        let refused = try await program.run("verify", file, "--trust", key)
        #expect(refused.status == 2 && refused.output.contains("decision"), "\(refused.output)")
        try write("{}", file)
        #expect(try await program.run("verify", file, "--trust", key).status == 1)
        #expect(try await program.run("verify", program.home + "/nothing", "--trust", key).status == 1)
    }
}
