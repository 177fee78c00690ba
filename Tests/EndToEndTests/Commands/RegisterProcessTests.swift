import AssentCore
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("Programs of one installation that register at the same time")
struct RegisterProcessTests {
    @Test("33 Four processes with one home and a token for five are one instance, which each of them knows")
    func once() async throws {
        try await RequestKindsTests.run(count: 5) { newcomer in
            let (program, operating) = (newcomer.program, newcomer.typist.program)
            let words = [
                "register", "--config", program.home + "/app.yaml", "--token-file", program.home + "/token.txt",
                "--json",
            ]
            let running = try (0..<4).map { _ in try program.start(words) }
            var (ids, new): (Set<String>, Int) = ([], 0)
            for each in running {
                let result = await each.result()
                try #require(result.status == 0, "\(result.errors)")
                let told = try JSONValue.parse(result.output)
                ids.insert(try #require(told["client_id"]?.string, "\(result.output)"))
                new += told["new"] == true ? 1 : 0
            }
            let listed = try await operating.run("admin", "registrations", "list")
            let instances = try listed.output.split(separator: "\n").map { try JSONValue.parse(String($0)) }
            #expect(instances.compactMap { $0["clientId"]?.string } == Array(ids), "\(listed.output)")
            #expect(ids.count == 1 && new >= 1)
            // What they share works.
            let info = try await newcomer.type("assent request --as device GET /app-info")
            #expect(info.status == 0, "\(info.errors)")
        }
    }
}
