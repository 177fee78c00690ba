import AssentCore
import AssentOTP
import AssentServer
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("A device on the command line")
struct DeviceTests {
    /// A world with devices, a user who has signed in, and a device with a home of its own.
    ///
    /// - Parameters:
    ///   - more: what the server's file says of signing, besides.
    ///   - edit: makes another file of the server's file.
    ///   - configuring: what else is different.
    ///   - body: what is done there.
    /// - Throws: when it cannot be made, and what `body` throws.
    static func run(
        with more: String = "", editing edit: (String) -> String = { $0 },
        configuring: @escaping @Sendable (inout ServerConfiguration) -> Void = { _ in },
        _ body: (_ world: DemoWorld, _ user: Program, _ device: Program) async throws -> Void
    ) async throws {
        let directory = NSTemporaryDirectory() + "/assent-device-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var sources = try await World.sources()
        // Some of these stories take longer than a session lives that its user leaves alone.
        let example = try World.example()
            .replacing("idleMinutes: 30", with: "idleMinutes: 120")
        sources.configurationFile = directory + "/assent.yaml"
        let name = try #require(example.firstRange(of: "      name: Bank of Example\n"))
        // These go by the machine's clock, and one program after the other starts until something is over.
        let fresh = more.contains("freshSeconds:") ? "" : "      freshSeconds: 3600\n"
        let text = edit("\(example[..<name.upperBound])\(fresh)\(more)\(example[name.upperBound...])")
            .replacing("match: number", with: "ttl: 3600, match: number").replacing("ttl: 180}", with: "ttl: 3600}")
        try text.write(toFile: sources.configurationFile, atomically: false, encoding: .utf8)
        let usual = sources.configure
        sources.configure = {
            configuring(&$0)
            try usual(&$0)
            // Between a code and its use a program starts, which takes a busy machine longer than a code is good for.
            $0.oneTimePasswords.tolerance = 10
        }
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
            let desk = DeviceDesk(world: world, user: user, device: device)
            let invited = try await desk.enrol(["--name", "A laptop"], after: ["0000 0000"]).invited
            #expect(invited.output.contains("is enrolled") && invited.errors.contains("The server refused"))
            #expect(invited.errors.contains("only the digits that you read from the device in your hand"))
            let (signed, transaction) = try await desk.payAndSign()
            for text in ["Confirm transfer", "200.00 EUR", "Bob"] { #expect(signed.output.contains(text)) }
            let evidence = try await desk.evidence(of: transaction)
            await world.stop()
            try await verify(evidence, desk)
        }
    }

    @Test("Transactions are listed, shown, approved, declined and reported one by one")
    func oneByOne() async throws {
        try await Self.run { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            try await desk.enrol()
            func transactions(_ words: String..., typing: [String] = []) async throws -> Program.Result {
                let running = try device.start(
                    ["transactions"] + words + ["--config", device.clientFile], typing: !typing.isEmpty)
                if !typing.isEmpty {
                    try running.type(typing)
                    try running.endInput()
                }
                return await running.result()
            }
            let empty = try await transactions("list")
            #expect(empty.status == 0 && empty.output.contains("No transaction is open"), "\(empty.errors)")
            #expect(try await transactions("approve").status == 2)

            let (paying, number) = try await desk.pay()
            let list = try await transactions("list", "--wait", "20", "--json")
            let listed = try JSONValue.parse(list.output)
            #expect(listed["title"]?.string == "Confirm transfer" && list.output.contains("200.00 EUR"))
            let txn = try #require(listed["transaction"]?.string)
            let shown = try await transactions("show", "--transaction", txn)
            #expect(shown.output.contains("200.00 EUR") && shown.output.contains("accept"), "\(shown.errors)")
            #expect(try await transactions("approve", "--transaction", "nothing").status == 2)
            let nothing = try await transactions("approve", typing: ["2"])
            #expect(nothing.status == 2 && nothing.errors.contains("Nothing was signed"))
            #expect(nothing.output.contains("Open for "), "\(nothing.output)")
            let signed = try await transactions("approve", "--number", number, "--json", typing: ["1"])
            #expect(signed.status == 0, "\(signed.errors)")
            #expect(try JSONValue.parse(signed.output)["effect"]?.string == "approve")
            let paid = await paying.result()
            #expect(paid.status == 0, "\(paid.errors)")

            let again = try await desk.pay().paying
            let declined = try await transactions("decline", "--reason", "Not now")
            #expect(declined.status == 0 && declined.output.contains("Declined"), "\(declined.errors)")
            let unpaid = await again.result()
            #expect(unpaid.status == 2 && unpaid.errors.contains("generic 9006"), "\(unpaid.errors)")
            #expect(!unpaid.errors.contains("Correct what was typed"))

            let strange = try await desk.pay().paying
            let given = try await transactions("cancel")
            #expect(given.status == 2 && given.errors.contains("transactions decline"), "\(given.errors)")
            let reported = try await transactions("report", "--reason", "Not me")
            #expect(reported.status == 0 && reported.output.contains("Declined and reported"), "\(reported.errors)")
            #expect(await strange.result().status == 2)
            let over = try await transactions("report")
            #expect(over.status == 2 && over.errors.contains("No transaction is open"), "\(over.errors)")
        }
    }

    @Test("A transaction that may be given up is canceled with a reason, and the payment is not made")
    func cancel() async throws {
        let transfer = "{title: Confirm transfer, match: number}"
        let cancelable = """
            {title: Confirm transfer, match: number, statuses: [
                        {name: accept, label: Approve, effect: approve}, {name: deny, label: Decline, effect: deny},
                        {name: later, label: Not now, effect: cancel, reason: optional}]}
            """
        try await Self.run(editing: { $0.replacing(transfer, with: cancelable) }) { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            try await desk.enrol()
            let paying = try await desk.pay().paying
            let canceled = try await desk.onDevice("transactions", "cancel", "--reason", "Later", "--json")
            #expect(canceled.status == 0, "\(canceled.errors)")
            let receipt = try JSONValue.parse(canceled.output)
            #expect(receipt["effect"] == "cancel" && receipt["status"] == "later", "\(canceled.output)")
            #expect(await paying.result().status == 2)
            #expect(try await desk.onDevice("transactions", "cancel").status == 2)
        }
    }

    @Test("A device's keys are under a passphrase where the user chose that")
    func passphrase() async throws {
        try await Self.run { world, user, device in
            let secret = device.home + "/secret"
            try Data("a passphrase of its own\n".utf8).write(to: URL(fileURLWithPath: secret))
            try await DeviceDesk(world: world, user: user, device: device)
                .enrol(["--keys", "passphrase", "--passphrase-file", secret])
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
            let desk = DeviceDesk(world: world, user: user, device: device)
            let (inviting, code) = try await desk.invite()
            let issuer = world.endpoints.server + "/signing/realms/root/realms/alpha"
            let authority = try #require(world.endpoints.authorityFile)
            let state = ["--state", device.home + "/state.json", "--ca", authority]
            func python(_ words: String...) async throws -> String { try await Self.python(["device"] + state + words) }
            let enrolled = try await python("enrol", "--code", code, "--iss", issuer)
            _ = try await desk.confirm(inviting, shown: enrolled)

            let (paying, number) = try await desk.pay()
            let txn = try #require(try await python("list", "--wait", "20").firstMatch(of: /[A-Za-z0-9_-]{22}/)?.output)
            // An id may begin with a hyphen.
            let document = try await python("fetch", "--", String(txn))
            #expect(document.contains("200.00 EUR") && document.contains("Bob"))
            _ = try await python("decide", "--number", number, "--", String(txn), "accept")
            let paid = await paying.result()
            #expect(paid.status == 0, "\(paid.errors)")

            let evidence = try await desk.evidence(of: String(txn))
            await world.stop()
            let (file, key) = try desk.write(evidence)
            #expect(try await Self.python(["verify", file, "--trust", key]).contains("200.00 EUR"))
            try await verify(evidence, desk)
        }
    }

    private static func python(_ words: [String]) async throws -> String {
        let tsp = World.package.appendingPathComponent("Tests/Signing/tsp").path
        let finished = try await offPool { try FinishedProcess.run("/usr/bin/python3", [tsp] + words) }
        try #require(finished.status == 0, "\(words): \(finished.text) \(finished.complaints)")
        return finished.text
    }

    private func verify(_ bundle: String, _ desk: DeviceDesk) async throws {
        let program = desk.device
        let (file, key) = try desk.write(bundle)
        func write(_ text: String, _ path: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }
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
