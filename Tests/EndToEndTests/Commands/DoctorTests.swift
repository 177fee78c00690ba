import AssentServer
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent doctor asks the server")
struct DoctorTests {
    @Test("What a client's file says wrongly of its server is a problem that names the entry to correct")
    func wrongEntries() async throws {
        try await Typist.run { typist in
            let right = try #require(
                ClientFile(endpoints: typist.world.endpoints, configuration: typist.world.configuration))
            let path = typist.program.home + "/asked.yaml"
            func ask(_ change: (inout ClientFile) -> Void) async throws -> Program.Result {
                var file = right
                change(&file)
                try file.yaml.write(toFile: path, atomically: false, encoding: .utf8)
                return try await typist.program.run("doctor", "--config", path)
            }
            let fine = try await ask { _ in }
            #expect(fine.status == 0, "\(fine.output)\(fine.errors)")
            #expect(fine.output.contains("knows the client \(right.clientID), its redirect URI and its scopes"))
            #expect(fine.output.contains("has the journey \(right.journey)"))
            let changes: [(entry: String, (inout ClientFile) -> Void)] = [
                ("Correct server or realm", { $0.realm = "/elsewhere" }),
                ("Correct server or realm", { $0.server += "/elsewhere" }),
                ("Correct client.id or client.redirectURI", { $0.clientID = "nobody" }),
                ("Correct client.id or client.redirectURI", { $0.redirectURI = "https://elsewhere.example/callback" }),
                ("Correct client.scopes", { $0.scopes.append("elsewhere") }),
                ("correct cookieName", { $0.cookieName = "elsewhere" }),
                ("Correct journey", { $0.journey = "Elsewhere" }),
            ]
            for (entry, change) in changes {
                let told = try await ask(change)
                let problems = told.output.split(separator: "\n").filter { $0.hasPrefix("✗") }
                #expect(told.status == 78 && problems.count == 1, "\(entry): \(told.output)")
                #expect(problems.first?.contains(entry) == true, "\(entry): \(told.output)")
            }
        }
    }
}
