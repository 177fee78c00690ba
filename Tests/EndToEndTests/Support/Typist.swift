import AssentCore
import AssentOTP
import AssentServer
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// Somebody who types commands, beside the demo's world.
struct Typist: Sendable {
    let world: DemoWorld
    let clock: FollowingClock
    let program: Program

    /// A code that was not used before.
    func code() throws -> String {
        clock.advance(by: 30)
        return try TOTP(secret: world.account.totpSeed).code(at: clock.now)
    }

    /// Lets the server's clock catch up with the machine's, by which programs date assertions and proofs, and follow it
    /// from then on. It stays ten seconds behind, since each code moves it by thirty.
    func catchUp() { clock.follow() }

    func login(_ options: [String] = []) async throws -> Program.Result {
        try await program.run(
            ["login", "--config", program.clientFile] + options,
            typing: [world.account.username, world.account.password.reveal(), try code()])
    }

    func pay(_ amount: String, to payee: String = "Bob", typing lines: [String]) async throws -> Program.Result {
        try await program.run(
            "request", "POST", transfers, "--data", Self.transfer(amount, to: payee), typing: lines)
    }

    func balance() async throws -> String? {
        let reply = try await program.run("request", "GET", "\(world.endpoints.gateway ?? "")/accounts")
        try #require(reply.status == 0, "\(reply.errors)")
        return try JSONValue.parse(reply.output)["balance"]?.string
    }

    var transfers: String { "\(world.endpoints.gateway ?? "")/transfers" }

    static func transfer(_ amount: String, to payee: String = "Bob") -> String {
        #"{"to":"\#(payee)","amount":"\#(amount)","currency":"EUR"}"#
    }

    /// - Parameters:
    ///   - edit: makes another file of the server's file.
    ///   - body: what is typed.
    /// - Throws: when the world cannot be made, and what `body` throws.
    static func run(
        editing edit: (String) -> String = { $0 }, _ body: (Typist) async throws -> Void
    ) async throws {
        let directory = NSTemporaryDirectory() + "/assent-commands-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        // The program goes by the machine's clock: the server's stays behind it, however often it is moved.
        let clock = FollowingClock(Date(timeIntervalSinceNow: -150))
        var sources = try await World.sources()
        let example = try World.example()
        sources.configurationFile = directory + "/assent.yaml"
        // Once the clock follows, some of these stories take longer than a session lives that nobody uses.
        let text = edit(example).replacing(
            "maxMinutes: 120, idleMinutes: 30", with: "maxMinutes: 1440, idleMinutes: 1440")
        try text.write(toFile: sources.configurationFile, atomically: false, encoding: .utf8)
        let usual = sources.configure
        sources.configure = {
            try usual(&$0)
            // A code is good for minutes, since its server's clock may follow.
            $0.oneTimePasswords.tolerance = 10
        }
        let world = try await DemoWorld.start(
            sources: sources, clock: clock, logger: CollectingLog().logger)
        do {
            let file = try #require(ClientFile(endpoints: world.endpoints, configuration: world.configuration))
            let program = try Program(below: directory, client: file.yaml)
            try await body(Typist(world: world, clock: clock, program: program))
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }
}
