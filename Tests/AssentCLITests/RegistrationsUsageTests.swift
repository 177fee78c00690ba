import ArgumentParser
import Testing

@testable import AssentCLI

@Suite("What assent admin registrations takes")
struct RegistrationsUsageTests {
    @Test(
        "What cannot be meant is refused before anything is read",
        arguments: [
            ["token"], ["token", "--app", "pay", "--count", "0"], ["token", "--app", "pay", "--count", "1000001"],
            ["token", "--app", "pay", "--count", "many"], ["token", "--app", "pay", "--days", "0"],
            ["token", "--app", "pay", "--days", "366"], ["end"], ["end", "--all"], ["end", "--app", "pay"],
            ["end", "pay~1", "--all"], ["end", "pay~1", "--app", "pay", "--all"], ["list", "pay"], ["purge"],
            ["token", "--app", "pay", "--output", "/dev/null"],
            ["token", "--app", "pay", "--output", "token.txt", "--json"],
        ])
    func badInput(words: [String]) {
        #expect(throws: (any Error).self) { try RegistrationsCommand.parseAsRoot(words) }
    }

    @Test("All instances are ended, some at a time, and counts that cannot be true are an error")
    func endAll() async throws {
        var counts: [Int64] = [200, 7, 0]
        let total = try await RegistrationsCommand.End.endAll { counts.removeFirst() }
        #expect(total == 207 && counts.isEmpty)
        await #expect(throws: CommandFailure.self) { try await RegistrationsCommand.End.endAll { .max } }
    }

    @Test("What may be given is taken")
    func goodInput() throws {
        for words in [
            ["token", "--app", "pay", "--count", "1000000", "--days", "365"], ["end", "pay~1"],
            ["token", "--app", "pay", "--output", "/tmp/no-such-file-of-assent"],
            ["end", "--app", "pay", "--all"],
        ] { _ = try RegistrationsCommand.parseAsRoot(words) }
    }

    @Test("Each command says what it does and what may be given")
    func help() {
        let commands: [(String, any ParsableCommand.Type)] = [
            ("token", RegistrationsCommand.Token.self), ("list", RegistrationsCommand.List.self),
            ("end", RegistrationsCommand.End.self),
        ]
        let all = RegistrationsCommand.helpMessage()
        for (word, command) in commands {
            let text = RegistrationsCommand.helpMessage(for: command)
            #expect(text.contains("--app") && text.contains("--config"), "\(text)")
            #expect(all.contains("  \(word) "), "\(all)")
        }
    }
}
