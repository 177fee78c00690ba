import AssentCore
import AssentEngine
import AssentServer
import Foundation
import Testing

@testable import AssentCLI

@Suite("assent admin hash-password")
struct HashPasswordTests {
    private func hash(_ home: VaultCommandTests.Home, _ arguments: [String]) throws -> (Int32, String, String) {
        let result = try home.run(["admin", "hash-password"] + arguments)
        return (result.status, result.out.trimmingCharacters(in: .newlines), result.err)
    }

    private func isHash(_ text: String, of password: String) throws -> Bool {
        let hash = try #require(PasswordHash(text))
        let derived = try ScryptDerivation().derive(
            Secret(password), salt: hash.salt, cost: hash.cost, byteCount: hash.hash.count)
        return derived == hash.hash
    }

    @Test("It is the hash of the file's line at the production cost, another one each time, and shows nothing else")
    func file() throws {
        let home = try VaultCommandTests.Home()
        let file = try home.file("ana.password", "öffne dich\n")
        let (status, first, errors) = try hash(home, ["--password-file", file])
        #expect(status == 0 && first.hasPrefix("$scrypt$ln=17,r=8,p=1$"), "\(errors)")
        #expect(try isHash(first, of: "öffne dich"))
        #expect(try !isHash(first, of: "offne dich"))
        #expect(try hash(home, ["--password-file", file]).1 != first)
    }

    @Test("With the server's file the cost is the configured one, and the server takes what was made")
    func configured() async throws {
        let home = try VaultCommandTests.Home()
        let file = try home.file("ana.password", "correct horse")
        let example = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Examples/bank/assent.yaml").path
        let configuration = try ServerConfiguration.load(file: example)
        let (status, text, errors) = try hash(home, ["--config", example, "--password-file", file])
        #expect(status == 0, "\(errors)")
        #expect(PasswordHash(text)?.cost == .init(logN: configuration.passwordCost.trailingZeroBitCount))
        #expect(try isHash(text, of: "correct horse"))
    }

    @Test(
        "No password, an empty one, one too long, one that is not text, two sources, a wrong file: refused, nothing printed"
    )
    func refused() throws {
        let home = try VaultCommandTests.Home()
        let good = try home.file("good", "x")
        let broken = try home.file("broken.yaml", "nonsense: 1\n")
        let long = try home.file("long", String(repeating: "x", count: 1025))
        let empty = try home.file("empty", "\n")
        let bytes = home.directory.appending(path: "bytes").path
        try Data([0xC3, 0x28]).write(to: URL(fileURLWithPath: bytes))
        let attempts: [([String], Int32)] = [
            ([], 1), (["--password-file", empty], 1), (["--password-file", long], 1), (["--password-file", bytes], 1),
            (["--password-file", "/nowhere"], 1), (["--password-file", good, "--password-fd", "0"], 64),
            (["--config", broken, "--password-file", good], 78), (["hunter2"], 64),
        ]
        for (arguments, due) in attempts {
            let (status, out, errors) = try hash(home, arguments)
            #expect(status == due && out.isEmpty && !errors.isEmpty, "\(arguments): \(status) \(out)")
            #expect(errors.contains("Usage:") == (due == 64), "\(errors)")
        }
        #expect(try hash(home, []).2.contains("--password-file"))
        // The file may lack the very hash that is to be made: then it is no help to say that this command makes it.
        #expect(try hash(home, ["--config", broken, "--password-file", good]).2.contains("Without --config"))
    }

    @Test("What the server would refuse as a password gets no hash: short, common, and shorter than the file says")
    func weak() throws {
        let home = try VaultCommandTests.Home()
        for (text, reason) in [("a", "at least 8 characters"), ("Password1", "first that anyone tries")] {
            let (status, out, errors) = try hash(home, ["--password-file", try home.file("weak", text)])
            #expect(status == 1 && out.isEmpty && errors.contains(reason), "\(errors)")
        }
        let example = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Examples/bank/assent.yaml")
        let stricter = try String(contentsOf: example, encoding: .utf8) + "\npasswords: {minLength: 14}\n"
        let (status, out, errors) = try hash(
            home,
            [
                "--config", try home.file("assent.yaml", stricter),
                "--password-file", try home.file("short", "correct horse"),
            ])
        #expect(status == 1 && out.isEmpty && errors.contains("at least 14 characters"), "\(errors)")
    }

    @Test("A reply's last line is ended on a terminal, and nowhere else is a byte added")
    func lastLine() {
        let body = Array(#"{"a":1}"#.utf8)
        #expect(Console.shown(body, onTerminal: true) == body + [0x0A])
        #expect(Console.shown(body, onTerminal: false) == body)
        #expect(Console.shown(body + [0x0A], onTerminal: true) == body + [0x0A])
        #expect(Console.shown([], onTerminal: true) == [])
    }

    @Test("A terminal does nothing for what a service's reply has in it, and a file gets every byte")
    func acting() {
        let body = Array("a\tb\r\n\u{1B}]52;c;eA==\u{7}\r\u{9B}2K\u{202E}é \\".utf8) + [0x9B, 0xFF]
        let shown = String(decoding: Console.shown(body, onTerminal: true), as: UTF8.self)
        let visible = #"\u{1B}]52;c;eA==\u{7}\u{D}\u{9B}2K\u{202E}é \"#
        #expect(shown.utf8.elementsEqual("a\tb\r\n\(visible)\u{FFFD}\u{FFFD}\n".utf8))
        #expect(Console.shown(body, onTerminal: false) == body)
    }
}
