import AssentCore
import AssentOTP
import AssentPeers
import Foundation
import TestSupport
import Testing

/// What README.md has for people to type.
@Suite("README.md, read as a person does")
struct ReadmeTests {
    /// The commands of the page, without their remarks, in their order.
    private static func commands() throws -> [String] {
        let page = try String(contentsOf: World.package.appending(path: "README.md"), encoding: .utf8)
        let parts = page.components(separatedBy: "\n```")
        // Every second one is a block, which begins with its language.
        let blocks = stride(from: 1, to: parts.count, by: 2).map { parts[$0].split(separator: "\n") }
        return blocks.filter { $0.first == "console" }.flatMap { $0.dropFirst() }.map { line in
            let command = line.split(separator: " # ").first ?? ""
            return command.trimmingCharacters(in: .whitespaces)
        }
    }

    private static func command(_ isWanted: (String) -> Bool) throws -> String {
        let found = try commands().filter(isWanted)
        try #require(found.count == 1, "\(found)")
        return String(try #require(found.first?.split(separator: "$ ").first))
    }

    @Test("Each command is known here, and run by a test")
    func known() throws {
        var others: [String] = []
        for command in try Self.commands() {
            switch command {
            // This test is a part of it.
            case "$ make test": continue
            // What it builds `DemoCommandTests` runs.
            case "$ make demo": continue
            case _ where command.hasSuffix("assent demo --keep"): continue
            case _ where command.hasPrefix("$ openssl"): continue
            default: others.append(command)
            }
        }
        #expect(others.isEmpty)
        let makefile = try String(contentsOf: World.package.appending(path: "Makefile"), encoding: .utf8)
        for target in ["\ndemo:", "\ntest:"] { #expect(makefile.contains(target)) }
    }

    @Test("The demo that goes on running: what it prints signs in, reads the balance and pays; the pin is the server's")
    func keep() async throws {
        let place = NSTemporaryDirectory() + "assent-readme-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(
            atPath: place, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: place) }
        let words = try Self.command { $0.hasSuffix(" demo --keep") }.split(separator: " ").map(String.init)
        try #require(words[0] == ".build/debug/assent")
        let environment = ["HOME": place, "TMPDIR": place, "PATH": "/usr/bin:/bin"]
        // The page says it for the directory that it is in.
        let demo = try Program.Running(
            Program.Running.limits + [
                "/usr/bin/env", "-C", World.package.path, BuiltProgram.beside("assent").path,
            ] + words.dropFirst(), environment: environment)
        do {
            let client = try await Self.pay(as: demo, environment)
            try await Self.checkPin(of: client, in: place)
        } catch {
            demo.interrupt()
            _ = await demo.result()
            throw error
        }
        demo.interrupt()
        #expect(await demo.result().status == 0)
    }

    /// Signs in and pays by the lines that the demo prints.
    ///
    /// - Returns: the path of the client's file, from the first of them.
    private static func pay(as demo: Program.Running, _ environment: [String: String]) async throws -> String {
        let (name, password) = (try await demo.value(of: "user"), try await demo.value(of: "password"))
        let seed = try #require(Base32.decode(try await demo.value(of: "TOTP")))
        let totp = try TOTP(secret: Secret(bytes: seed))
        let login = try await demo.line(with: " login --config ")
        let accounts = try await demo.line(with: " request GET ")
        let transfer = try await demo.line(with: " request POST ")
        func type(_ line: String, _ answers: [String]) async throws -> Program.Result {
            let running = try Program.Running(
                Program.Running.limits + ["/bin/sh", "-c", line], typing: true,
                environment: environment)
            try running.type(answers)
            try running.endInput()
            return await running.result()
        }
        // On a busy machine it is later when the program asks: who is told that a code is wrong types the next one.
        func codes(from seconds: TimeInterval) -> [String] {
            (0..<3).map { totp.code(at: Date(timeIntervalSinceNow: seconds + Double($0) * 30)) }
        }
        let signedIn = try await type(login, [name, password] + codes(from: 0))
        #expect(signedIn.status == 0, "\(signedIn)")
        let before = try await type(accounts, [])
        #expect(try JSONValue.parse(before.output)["balance"] == "1000.00", "\(before)")
        // The code of now was used; the server takes the next one already.
        let paid = try await type(transfer, ["1"] + codes(from: 30))
        #expect(paid.status == 0, "\(paid)")
        let after = try await type(accounts, [])
        #expect(try JSONValue.parse(after.output)["balance"] == "800.00", "\(after)")
        return try #require(login.components(separatedBy: " --config ").last)
    }

    /// Computes the pin of the demo's certificate as the page says, and finds it in the client's file.
    private static func checkPin(of client: String, in place: String) async throws {
        let world = URL(fileURLWithPath: client).deletingLastPathComponent()
        try FileManager.default.copyItem(
            atPath: world.appending(path: "server/server.pem").path, toPath: place + "/certificate.pem")
        let command = try command { $0.hasPrefix("$ openssl") }
        let done = try await offPool { try FinishedProcess.run("/bin/sh", ["-euc", command], directory: place) }
        let pin = done.text.trimmingCharacters(in: .newlines)
        #expect(done.status == 0 && pin.count == 44, "\(done.complaints)")
        #expect(try String(contentsOfFile: client, encoding: .utf8).contains("sha256/\(pin)"))
    }
}
