import AssentCore
import AssentPeers
import Foundation
import TestSupport
import Testing

@testable import AssentCLI

/// What a person sees who types a password at a real terminal.
@Suite("Hidden prompts at a terminal")
struct HiddenPromptTests {
    private static let password = "correct-horse"

    /// A program at a terminal of its own.
    private struct Sitting {
        let terminal: PseudoTerminal
        let process: SpawnedProcess
        let home: VaultCommandTests.Home

        init(_ program: String, _ arguments: [String]) throws {
            home = try VaultCommandTests.Home()
            terminal = try PseudoTerminal()
            process = try SpawnedProcess(
                program, arguments,
                environment: [
                    "HOME": home.directory.path, "PATH": "/usr/bin:/bin", "TERM": "dumb", "PS1": "ready> ",
                ], at: terminal)
        }

        static func hashPassword() throws -> Sitting {
            try Sitting(BuiltProgram.beside("assent").path, ["admin", "hash-password"])
        }
    }

    @Test("A password is not shown, and the terminal shows what is typed again afterwards")
    func answered() async throws {
        let sitting = try Sitting.hashPassword()
        let terminal = sitting.terminal
        for question in ["New password: ", "The same again: "] {
            try await terminal.wait(for: question)
            #expect(!terminal.echoes)
            terminal.type(Self.password + "\n")
        }
        #expect(await sitting.process.ended() == 0, "\(terminal.text)")
        try await terminal.wait(for: "$scrypt$")
        #expect(!terminal.text.contains("correct") && terminal.echoes)
    }

    @Test(
        "Whatever ends it at the question, the terminal shows what is typed again",
        arguments: [SIGINT, SIGTERM, SIGHUP])
    func ended(by number: Int32) async throws {
        let sitting = try Sitting.hashPassword()
        try await sitting.terminal.wait(for: "New password: ")
        #expect(!sitting.terminal.echoes)
        sitting.terminal.type("corr")
        sitting.process.signal(number)
        #expect(await sitting.process.ended() == -number)
        #expect(sitting.terminal.echoes && !sitting.terminal.text.contains("corr"))
    }

    @Test("Ctrl-C ends it, also in a script that goes on, which then shows what is typed")
    func interrupted() async throws {
        let program = BuiltProgram.beside("assent").path
        let sitting = try Sitting(
            "/bin/sh",
            ["-c", "trap : INT; '\(program)' admin hash-password; echo goes on; read line; echo got \"$line\""])
        let terminal = sitting.terminal
        try await terminal.wait(for: "New password: ")
        terminal.type("corr\u{3}")
        try await terminal.wait(for: "goes on")
        #expect(terminal.echoes && !terminal.text.contains("corr"))
        terminal.type("shown\n")
        try await terminal.wait(for: "got shown")
        #expect(await sitting.process.ended() == 0)
    }

    @Test("Ctrl-Z and fg: the shell shows what is typed, the question comes again, and the password is not shown")
    func stopped() async throws {
        let program = BuiltProgram.beside("assent").path
        let sitting = try Sitting("/bin/sh", ["-i"])
        let terminal = sitting.terminal
        try await terminal.wait(for: "ready> ")
        terminal.type("'\(program)' admin hash-password\n")
        try await terminal.wait(for: "New password: ")
        terminal.type("corr\u{1A}")
        try await terminal.wait(for: "Stopped")
        try await terminal.wait(for: "ready> ")
        #expect(terminal.echoes)
        terminal.type("fg\n")
        try await terminal.wait(for: "New password: ")
        #expect(!terminal.echoes)
        terminal.type(Self.password + "\n")
        try await terminal.wait(for: "The same again: ")
        terminal.type(Self.password + "\n")
        try await terminal.wait(for: "$scrypt$")
        try await terminal.wait(for: "ready> ")
        #expect(terminal.echoes && !terminal.text.contains("corr"))
        terminal.type("exit\n")
        #expect(await sitting.process.ended() == 0)
    }

    @Test("The end of the input after it was stopped and continued ends it at once, and says why")
    func endOfInput() async throws {
        let sitting = try Sitting.hashPassword()
        let terminal = sitting.terminal
        try await terminal.wait(for: "New password: ")
        sitting.process.signal(SIGSTOP)
        sitting.process.signal(SIGCONT)
        try await terminal.wait(for: "New password: ")
        #expect(!terminal.echoes)
        terminal.type("\u{4}")
        #expect(await sitting.process.ended() == 1)
        try await terminal.wait(for: "was not answered")
        #expect(terminal.echoes)
    }

    @Test("What was typed before a question is thrown away at a terminal, and kept in a pipe")
    func typedAhead() throws {
        let terminal = try PseudoTerminal()
        let line = open(terminal.name, O_RDWR | O_NOCTTY | O_CLOEXEC)
        defer { close(line) }
        terminal.type("too early\n")
        var waiting = pollfd(fd: line, events: Int16(POLLIN), revents: 0)
        #expect(poll(&waiting, 1, -1) == 1)
        let input = TerminalInput(descriptor: line)
        input.discardTyped()
        terminal.type("in time\n")
        #expect(try input.line() == Array("in time".utf8))

        let pipe = Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: Data("an answer\n".utf8))
        let piped = TerminalInput(descriptor: pipe.fileHandleForReading.fileDescriptor)
        piped.discardTyped()
        #expect(try piped.line() == Array("an answer".utf8))
    }

    @Test("Answers come line by line from a pipe, and its end is said")
    func piped() throws {
        let program = BuiltProgram.beside("assent").path
        let whole = try FinishedProcess.run(
            program, ["admin", "hash-password"], input: Array("a b c d e\r\na b c d e\n".utf8))
        #expect(whole.status == 0 && whole.text.hasPrefix("$scrypt$"), "\(whole.complaints)")
        let half = try FinishedProcess.run(program, ["admin", "hash-password"], input: Array("a b c d e\n".utf8))
        #expect(half.status == 1 && half.complaints.contains("no more lines"), "\(half.complaints)")
        #expect(!half.complaints.contains("Usage:"))
    }
}
