import AssentCore
import AssentServer
import Foundation
import Testing

@testable import AssentDemo

@Suite("assent request --sealed, as a process beside the server")
struct SealedCommandTests {
    @Test("It calls sealed by the keys that the operator has made, and sends nothing where the file does not seal")
    func request() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let gateway = try #require(typist.world.endpoints.gateway)
            let call = ["request", "--sealed", "--config", typist.program.clientFile, "GET", gateway + "/accounts"]
            // The control: without keys in the file nothing is sent.
            let refused = try await typist.program.run(call)
            #expect(refused.status != 0 && refused.errors.contains("Nothing was sent"), "\(refused.errors)")

            let bootstrap = try #require(typist.world.endpoints.bootstrapFile)
            #expect(try await typist.program.run("admin", "bootstrap", "--token-file", bootstrap).status == 0)
            var keys: [String] = []
            for _ in 0..<2 {
                let made = try await typist.program.run("admin", "payload-keys", "add", "--days", "365")
                try #require(made.status == 0, "\(made.errors)")
                keys.append(try #require(try JSONValue.parse(made.output)["x"]?.string))
            }
            let list = keys.map { "\"\($0)\"" }.joined(separator: ", ")
            let plain = try String(contentsOfFile: typist.program.clientFile, encoding: .utf8)
            let file = plain + "payloadEncryption:\n  \"\(gateway)\": {keys: [\(list)]}\n"
            try Data(file.utf8).write(to: URL(fileURLWithPath: typist.program.clientFile))

            let sealed = try await typist.program.run(call)
            #expect(sealed.status == 0, "\(sealed.errors)")
            #expect(try JSONValue.parse(sealed.output)["balance"]?.string == "1000.00")
            let lines = sealed.errors.split(separator: "\n").map(String.init)
            #expect(lines.contains { $0.hasPrefix("handshake with \(gateway): ") }, "\(lines)")
            #expect(lines.contains { $0.hasPrefix("sealed request 1 to \(gateway): ") }, "\(lines)")
            #expect(lines.contains { $0.hasPrefix("sealed reply 1 from \(gateway): ") }, "\(lines)")

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
