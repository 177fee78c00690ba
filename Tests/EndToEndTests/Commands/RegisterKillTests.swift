#if os(Linux)
import AssentCore
import AssentServer
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("Programs of one installation that are killed while they register at the same time")
struct RegisterKillTests {
    /// The client id that `assent register --json` prints.
    private static func id(_ result: Program.Result) throws -> String {
        try #require(try JSONValue.parse(result.output)["client_id"]?.string, "\(result.output)")
    }

    @Test("Wherever four of them end, the next start has a registration that works, and is who any of them was told")
    func kills() async throws {
        try await RequestKindsTests.run(count: 100_000) { newcomer in
            let (typist, place) = (newcomer.typist, newcomer.program.home)
            let killer = try await WriteKiller(in: typist.program.home)
            let yaml = try String(contentsOfFile: place + "/app.yaml", encoding: .utf8)
            let words = [
                "register", "--config", place + "/app.yaml", "--token-file", place + "/token.txt", "--json",
            ]
            var all: Set<String> = []
            var (point, rounds, kills) = (1, 0, 0)
            while true {
                // An installation of its own for each point.
                let program = try Program(below: "\(typist.program.home)/round-\(point)", client: yaml)
                typist.catchUp()
                try await typist.world.forgetAttempts()
                let environment = try killer.environment(point, rounds, program)
                let running = try (0..<4).map { _ in try program.start(words, environment: environment) }
                var (ids, killed): (Set<String>, Int) = ([], 0)
                for each in running {
                    let result = await each.result()
                    guard !result.isKilled else {
                        killed += 1
                        continue
                    }
                    try #require(result.status == 0, "point \(point): \(result.errors)")
                    ids.insert(try Self.id(result))
                }
                let next = try await program.run(words)
                try #require(next.status == 0, "point \(point): \(next.errors)")
                ids.insert(try Self.id(next))
                #expect(ids.count == 1, "point \(point): \(ids)")
                let info = try await program.run("request", "--as", "device", "GET", "/app-info")
                #expect(info.status == 0, "point \(point): \(info.errors)")
                all.formUnion(ids)
                rounds += 1
                kills += killed
                if killed == 0 { break }
                point += Soak.isOn ? 1 : 7
            }
            // Before the first point nobody has done anything.
            #expect(kills >= 4 && all.count == rounds)
            let listed = try await typist.program.run("admin", "registrations", "list")
            let instances = try listed.output.split(separator: "\n").map { try JSONValue.parse(String($0)) }
            let known = Set(instances.compactMap { $0["clientId"]?.string })
            #expect(all.isSubset(of: known), "\(listed.output)")
            // One that was killed before it stored the answer has left a client that nobody has the key of.
            let left = known.count - all.count
            #expect(left <= kills)
            if Soak.isOn { print("\(kills) kills at \(point) write points of registering; \(left) left") }
        }
    }
}
#endif
