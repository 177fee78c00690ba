#if os(Linux)
import AssentCore
import AssentServer
import AssentStore
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("A remembered user's login that is killed at its write points")
struct LoginKillTests {
    /// Long enough that no other bytes look like it.
    private static let pin = "7391004288"

    /// The bank's app, whose users may be cut off more often than people are.
    private static func edited(_ file: String) -> String {
        RequestKindsTests.remembering(file).replacing(
            "password: {minLength: 4}}", with: "password: {minLength: 4}, lock: {max: 5, cap: 100, delays: []}}")
    }

    /// A user whom this installation remembers, and who has signed out.
    private static func run(_ body: (RequestKindsTests.Newcomer) async throws -> Void) async throws {
        try await RequestKindsTests.run(editing: edited) { newcomer in
            for (line, answers) in [
                ("assent register --config app.yaml --token-file token.txt", []),
                ("assent login", try newcomer.signIn), ("assent device enroll --here", [pin, pin]),
                ("assent logout", []),
            ] {
                let result = try await newcomer.type(line, answers)
                try #require(result.status == 0, "\(line): \(result.errors)")
            }
            try await body(newcomer)
        }
    }

    /// What the server has counted of the PIN, and which logins are on record.
    private struct Count {
        let evaluations: Int64
        let tries: Int64
        let unconfirmed: Int64
        let logins: Int

        init(_ world: DemoWorld) async throws {
            let slot = try #require(try await world.rows("SELECT * FROM signing_slots").first)
            evaluations = try slot.integer("n")
            tries = try slot.integer("n") - slot.integer("floor")
            unconfirmed = try slot.integer("unconfirmed")
            logins = try await world.rows(
                "SELECT detail FROM audit WHERE event = 'signing.login' AND outcome = 'success'"
            ).count
        }
    }

    /// What the installation keeps, by name, and where the PIN is in its files.
    private static func kept(_ newcomer: RequestKindsTests.Newcomer) async throws -> (secrets: String, pin: [String]) {
        let listed = try await newcomer.type("assent vault list")
        try #require(listed.status == 0, "\(listed.errors)")
        let search = SecretSearch([("PIN", Secret(pin))])
        return (listed.output, try search.found(below: newcomer.program.home).keys.sorted())
    }

    /// The names in what `assent vault list` says, without versions and sizes, which change.
    private static func names(_ listed: String) -> [String] {
        listed.split(separator: "\n").compactMap { $0.split(separator: " ").first.map(String.init) }.sorted()
    }

    /// Starts a command that is killed at a point, or ends before it.
    private static func start(
        _ words: [String], typing answers: [String], _ newcomer: RequestKindsTests.Newcomer,
        _ environment: [String: String]
    ) async throws -> Program.Result {
        newcomer.typist.catchUp()
        try await newcomer.typist.world.forgetAttempts()
        let running = try newcomer.program.start(words, environment: environment, typing: !answers.isEmpty)
        // It may have been killed.
        try? running.type(answers)
        if !answers.isEmpty { try? running.endInput() }
        return await running.result()
    }

    @Test("29: Wherever a login by PIN ends, the next one works, and the PIN that was typed costs one try at most")
    func byPIN() async throws {
        try await Self.run { newcomer in
            let world = newcomer.typist.world
            let killer = try await WriteKiller(in: newcomer.typist.program.home)
            let first = try await Self.kept(newcomer)
            var (point, kills, lost) = (1, 0, 0)
            while true {
                let before = try await Count(world)
                let environment = try killer.environment(point, kills, newcomer.program)
                let login = try await Self.start(["login", "--pin"], typing: [Self.pin], newcomer, environment)
                let isOver = !login.isKilled
                if isOver { try #require(login.status == 0, "\(login.errors)") }
                let cut = try await Count(world)
                #expect(cut.evaluations - before.evaluations <= 1, "point \(point): \(before) \(cut)")
                #expect(cut.logins - before.logins <= 1, "point \(point): \(before) \(cut)")

                let again = try await Self.start(["login", "--pin"], typing: [Self.pin], newcomer, [:])
                try #require(again.status == 0, "point \(point): \(again.errors)")
                #expect(again.output.contains("The PIN of ana is right"), "point \(point): \(again.output)")
                #expect(!again.errors.contains("Tries left"), "point \(point): \(again.errors)")
                let after = try await Count(world)
                #expect(after.evaluations == cut.evaluations + 1, "point \(point): \(cut) \(after)")
                #expect(after.logins == cut.logins + 1, "point \(point): \(cut) \(after)")
                // The right PIN brings the tries back; an evaluation that nothing has confirmed is held against the
                // user once, and one of which a login was made not at all.
                let unconfirmed = after.unconfirmed - before.unconfirmed
                let most = cut.evaluations - before.evaluations - Int64(cut.logins - before.logins)
                #expect(after.tries == 0 && (0...max(0, most)).contains(unconfirmed), "point \(point): \(after)")
                lost += Int(unconfirmed)

                let kept = try await Self.kept(newcomer)
                #expect(kept.pin == [] && Self.names(kept.secrets) == Self.names(first.secrets), "point \(point)")
                if isOver { break }
                kills += 1
                point += Soak.isOn ? 1 : 5
            }
            #expect(point > 5 && kills > 1 && lost <= kills / 2 + 1)
            if Soak.isOn { print("\(kills) kills of \(point) write points of a login by PIN; \(lost) tries lost") }
        }
    }

    @Test("32: Wherever an implicit login ends, the next one works, and nothing of either is kept")
    func implicit() async throws {
        try await Self.run { newcomer in
            let world = newcomer.typist.world
            let killer = try await WriteKiller(in: newcomer.typist.program.home)
            let words = ["request", "--as", "implicit", "GET", "/greeting"]
            let first = try await Self.kept(newcomer)
            var (point, kills) = (1, 0)
            while true {
                let before = try await Count(world)
                let environment = try killer.environment(point, kills, newcomer.program)
                let cut = try await Self.start(words, typing: [], newcomer, environment)
                let isOver = !cut.isKilled
                if isOver { try #require(cut.status == 0, "\(cut.errors)") }
                let again = try await Self.start(words, typing: [], newcomer, [:])
                try #require(again.status == 0, "point \(point): \(again.errors)")
                #expect(try JSONValue.parse(again.output)["greeting"] == "Hello ana", "point \(point)")
                // It has nothing to do with the PIN.
                let after = try await Count(world)
                #expect(after.evaluations == before.evaluations, "point \(point): \(before) \(after)")
                #expect(after.tries == 0 && after.unconfirmed == before.unconfirmed, "point \(point): \(after)")
                let kept = try await Self.kept(newcomer)
                #expect(kept.pin == [] && Self.names(kept.secrets) == Self.names(first.secrets), "point \(point)")
                if isOver { break }
                kills += 1
                point += Soak.isOn ? 1 : 3
            }
            // The PIN still works, once, and is not a try.
            let login = try await Self.start(["login", "--pin"], typing: [Self.pin], newcomer, [:])
            #expect(login.status == 0, "\(login.errors)")
            if Soak.isOn { print("\(kills) kills of \(point) write points of an implicit login") }
        }
    }
}
#endif
