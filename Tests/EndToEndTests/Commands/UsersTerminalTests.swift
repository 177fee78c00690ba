import AssentCore
import AssentPeers
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent users at a terminal")
struct UsersTerminalTests {
    @Test("What an authenticator app needs is drawn as a QR code, too, where the terminal is wide enough")
    func drawn() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let token = try #require(typist.world.endpoints.bootstrapFile)
            #expect(try await typist.program.run("admin", "bootstrap", "--token-file", token).status == 0)

            let shown = try await Self.shown("users add ben --totp --no-password", typist)
            let line = try #require(shown.first { $0.contains("otpauth://totp/") }, "\(shown)")
            let drawing = try #require(QRCode(String(line.drop { $0 == " " }))).lines(colours: false)
            #expect(drawing.contains { $0.contains("▀") } && drawing.contains { $0.contains("▄") })
            #expect(Array(shown.suffix(drawing.count)) == drawing, "\(shown)")

            let narrow = try await Self.shown("users totp ben", typist, columns: 40)
            #expect(narrow.contains { $0.contains("otpauth://totp/") }, "\(narrow)")
            #expect(narrow.last?.hasPrefix("The QR code is left out: it needs ") == true, "\(narrow)")
            #expect(!narrow.contains { $0.contains("▀") }, "\(narrow)")
        }
    }

    @Test("A list with nothing in it says so at a terminal, and is silent for a script")
    func emptyList() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            for list in ["consents", "device list"] {
                #expect(try await Self.shown(list, typist) == ["There is nothing to list."], "\(list)")
            }
            let script = try await typist.program.run("consents")
            #expect(script.status == 0 && script.output.isEmpty && script.errors.isEmpty, "\(script)")
        }
    }

    /// The lines that a command shows at a terminal, which does not say how wide it is unless `columns` does.
    private static func shown(_ command: String, _ typist: Typist, columns: Int? = nil) async throws -> [String] {
        let (terminal, home) = (try PseudoTerminal(), typist.program.home)
        let program = BuiltProgram.beside("assent").path
        let width = columns.map { "stty cols \($0); " } ?? ""
        let typed = try SpawnedProcess(
            "/bin/sh", ["-c", "\(width)'\(program)' \(command); echo the end"],
            environment: [
                "HOME": home, "XDG_STATE_HOME": home + "/state", "XDG_CONFIG_HOME": home + "/config",
                "PATH": "/usr/bin:/bin", "TERM": "dumb", "ASSENT_LEAST_SECONDS": "\(Patience.seconds)",
            ], at: terminal)
        try await terminal.wait(for: "the end")
        _ = await typed.ended()
        // Behind that line a part of the mark may be there by which the terminal learns of the program's end.
        let lines = terminal.text.split(whereSeparator: \.isNewline).map(String.init)
        return Array(lines.prefix { $0 != "the end" })
    }
}
