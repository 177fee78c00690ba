import AssentPeers
import Foundation
import TestSupport
import Testing

@Suite("The example bank")
struct BankTests {
    @Test("On a port that another program has, it says so and ends, without a crash")
    func portTaken() async throws {
        let directory = try TemporaryDirectory()
        let bank = BuiltProgram.beside("AssentExampleBank").path
        var environment = ["BANK_DATABASE": directory.path("bank.sqlite"), "BANK_PORT": "0", "PATH": "/usr/bin:/bin"]
        let first = try SpawnedProcess(bank, environment: environment, output: .pipe)
        let line = String(decoding: try #require(first.output).availableData, as: UTF8.self)
        let port = try #require(line.firstMatch(of: /127\.0\.0\.1:([0-9]+)/)).1
        environment["BANK_PORT"] = String(port)
        environment["BANK_DATABASE"] = directory.path("other.sqlite")
        let second = try FinishedProcess.run(
            "/usr/bin/timeout", ["\(Patience.seconds)", bank], environment: environment)
        #expect(second.status == 1, "\(second.status)")
        #expect(second.complaints.contains("another program listens on port \(port)"), "\(second.complaints)")
        #expect(!second.complaints.contains("Fatal error") && second.complaints.utf8.count < 1000)
    }

    @Test("Its help has its settings, and an argument that it does not know starts no bank")
    func help() throws {
        let directory = try TemporaryDirectory()
        let bank = BuiltProgram.beside("AssentExampleBank").path
        let environment = [
            "BANK_DATABASE": directory.path("bank.sqlite"), "BANK_PORT": "0", "PATH": "/usr/bin:/bin",
        ]
        for word in ["--help", "-h"] {
            let shown = try FinishedProcess.run(
                "/usr/bin/timeout", ["\(Patience.seconds)", bank, word], environment: environment)
            #expect(shown.status == 0 && shown.complaints.isEmpty)
            for name in ["BANK_DATABASE", "BANK_PORT", "BANK_OWNERS", "BANK_ENDS_WITH_INPUT"] {
                #expect(shown.text.contains(name), "\(name)")
            }
        }
        let unknown = try FinishedProcess.run(
            "/usr/bin/timeout", ["\(Patience.seconds)", bank, "--port"], environment: environment)
        #expect(unknown.status == 64 && unknown.complaints.contains("--help"))
        #expect(!FileManager.default.fileExists(atPath: directory.path("bank.sqlite")))
    }

    @Test("Without its settings, or with books that cannot be opened, it says what is missing")
    func settings() throws {
        let bank = BuiltProgram.beside("AssentExampleBank").path
        let nothing = try FinishedProcess.run(bank, environment: ["PATH": "/usr/bin:/bin"])
        #expect(nothing.status == 64 && nothing.complaints.contains("BANK_DATABASE"))
        let wrong = try FinishedProcess.run(
            "/usr/bin/timeout", ["\(Patience.seconds)", bank],
            environment: ["BANK_DATABASE": "/nowhere/bank.sqlite", "BANK_PORT": "0", "PATH": "/usr/bin:/bin"])
        #expect(wrong.status == 1 && wrong.complaints.contains("cannot start"), "\(wrong.complaints)")
    }
}
