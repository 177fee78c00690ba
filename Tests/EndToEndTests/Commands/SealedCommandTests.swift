import AssentCore
import AssentServer
import Foundation
import Testing

@testable import AssentDemo

@Suite("assent request --sealed, as a process beside the server")
struct SealedCommandTests {
    /// The example of docs/resources.md: its commands, without what they print, and its lines of the client's file.
    private static func page() throws -> (commands: [[String]], lines: String) {
        let page = try String(contentsOf: World.package.appending(path: "docs/resources.md"), encoding: .utf8)
        let rest = try #require(page.components(separatedBy: "\n## Sealed inside of TLS\n").last)
        let section = try #require(rest.components(separatedBy: "\n## ").first)
        func blocks(_ language: String) -> [String] {
            section.components(separatedBy: "\n```\(language)\n").dropFirst().compactMap {
                $0.components(separatedBy: "\n```").first
            }
        }
        let typed = blocks("console").flatMap { $0.split(separator: "\n") }.filter { $0.hasPrefix("$ assent ") }
        let commands = typed.map { $0.dropFirst(9).split(separator: " ").map(String.init) }
        return (commands, try #require(blocks("yaml").first) + "\n")
    }

    @Test("The example of docs/resources.md seals calls as it is written, and without its keys nothing is sent")
    func request() async throws {
        let (commands, lines) = try Self.page()
        #expect(commands.count == 3 && commands.last?.first == "request", "\(commands)")
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let gateway = try #require(typist.world.endpoints.gateway)
            let call = try #require(commands.last).map { word in
                word.replacing("https://api.bank.example", with: gateway)
                    .replacing("app.yaml", with: typist.program.clientFile)
            }
            // The control: without keys in the file nothing is sent.
            let refused = try await typist.program.run(call)
            #expect(refused.status != 0 && refused.errors.contains("Nothing was sent"), "\(refused.errors)")

            let bootstrap = try #require(typist.world.endpoints.bootstrapFile)
            #expect(try await typist.program.run("admin", "bootstrap", "--token-file", bootstrap).status == 0)
            var keys: [String] = []
            for command in commands.dropLast() {
                let made = try await typist.program.run(command)
                try #require(made.status == 0, "\(made.errors)")
                keys.append(try #require(try JSONValue.parse(made.output)["x"]?.string))
            }
            let sealing = lines.replacing("https://api.bank.example", with: gateway)
                .replacing("<x of the first>", with: keys.first ?? "")
                .replacing("<x of the second>", with: keys.last ?? "")
            let plain = try String(contentsOfFile: typist.program.clientFile, encoding: .utf8)
            try Data((plain + sealing).utf8).write(to: URL(fileURLWithPath: typist.program.clientFile))

            let sealed = try await typist.program.run(call)
            #expect(sealed.status == 0, "\(sealed.errors)")
            #expect(try JSONValue.parse(sealed.output)["balance"]?.string == "1000.00")
            let shown = sealed.errors.split(separator: "\n").map(String.init)
            #expect(shown.contains { $0.hasPrefix("handshake with \(gateway): ") }, "\(shown)")
            #expect(shown.contains { $0.hasPrefix("sealed request 1 to \(gateway): ") }, "\(shown)")
            #expect(shown.contains { $0.hasPrefix("sealed reply 1 from \(gateway): ") }, "\(shown)")

            // By keys that the server does not have nothing of the call leaves.
            let strangers = plain + "payloadEncryption:\n  \"\(gateway)\": {keys: [\(Self.stranger)]}\n"
            try Data(strangers.utf8).write(to: URL(fileURLWithPath: typist.program.clientFile))
            let unknown = try await typist.program.run(call)
            #expect(unknown.status != 0 && !unknown.errors.contains("sealed request"), "\(unknown.errors)")
            #expect(unknown.errors.contains("handshake with \(gateway): "), "\(unknown.errors)")
        }
    }

    /// RFC 7748 §6.1: Alice's.
    private static let stranger = "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo"
}
