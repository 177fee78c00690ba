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
    @Test("What an authenticator app needs is drawn as a QR code, too")
    func drawn() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let token = try #require(typist.world.endpoints.bootstrapFile)
            #expect(try await typist.program.run("admin", "bootstrap", "--token-file", token).status == 0)

            let (terminal, home) = (try PseudoTerminal(), typist.program.home)
            let program = BuiltProgram.beside("assent").path
            let adding = try SpawnedProcess(
                "/bin/sh", ["-c", "'\(program)' users add ben --totp --no-password; echo the end"],
                environment: [
                    "HOME": home, "XDG_STATE_HOME": home + "/state", "XDG_CONFIG_HOME": home + "/config",
                    "PATH": "/usr/bin:/bin", "TERM": "dumb",
                ], at: terminal)
            try await terminal.wait(for: "the end")
            _ = await adding.ended()
            let shown = terminal.text.split(whereSeparator: \.isNewline).map(String.init)
            let line = try #require(shown.first { $0.contains("otpauth://totp/") }, "\(terminal.text)")
            let drawing = try #require(QRCode(String(line.drop { $0 == " " }))).lines(colours: false)
            #expect(drawing.contains { $0.contains("▀") } && drawing.contains { $0.contains("▄") })
            #expect(Array(shown.dropLast().suffix(drawing.count)) == drawing, "\(terminal.text)")
        }
    }
}
