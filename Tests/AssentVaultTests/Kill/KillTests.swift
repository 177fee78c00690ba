#if os(Linux)
import AssentCore
import AssentPeers
import Foundation
import Testing

@testable import AssentVault

@Suite("A vault whose process is killed")
struct KillTests {
    static let canary = Array("plaintext-canary".utf8)

    /// What is wrong with the vault after an agent was killed that gave this account of itself.
    static func findings(_ directory: TemporaryDirectory, _ account: inout StoreAccount) async throws -> [String] {
        var wrong: [String] = []
        for file in try directory.files() where contains(Array(try Data(contentsOf: file)), canary) {
            wrong.append("plaintext in \(file.lastPathComponent)")
        }
        do {
            let vault = try await directory.open()
            let found = try await CrashTests.contents(vault)
            if found != account.secrets, found != account.afterBegun {
                wrong.append("found \(found.keys.sorted()), expected \(account.secrets.keys.sorted())")
            }
            account.secrets = found
            account.begun = nil
            let manifest = try await vault.current().manifest
            let names = try FileManager.default.contentsOfDirectory(atPath: directory.vault.path)
            let sealed = names.filter { FileVault.isSealedFile($0) || $0.hasPrefix("t-") }
            let beside = try FileManager.default.contentsOfDirectory(atPath: directory.url.path)
            if beside.contains(where: { $0.hasSuffix(".tmp") }) { wrong.append("left behind: \(beside)") }
            if sealed.count != manifest.count + manifest.shards.count { wrong.append("left behind: \(sealed)") }
        } catch {
            wrong.append("unreadable: \(error)")
        }
        return wrong
    }

    private static func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: part) }
    }

    /// How many write points the agent's script has.
    private static func writePoints() throws -> Int {
        let agent = try AgentProcess("trace", TemporaryDirectory())
        let lines = agent.lines()
        #expect(agent.endedWell)
        #expect(lines.last == "done")
        return lines.count { $0.hasPrefix("step ") }
    }

    @Test(
        "keeps what it acknowledged, stays readable and has no plaintext, at every write point"
    )
    func everyWritePoint() async throws {
        let points = try Self.writePoints()
        #expect(points >= 60)
        try await Self.inParallel(points) { point in
            let directory = try TemporaryDirectory()
            let agent = try AgentProcess("script", directory, point, seed: point)
            var account = StoreAccount()
            let lines = agent.lines()
            for line in lines { account.read(line) }
            // How many points there are depends a little on which names share a list.
            guard agent.wasKilled || lines.last == "done" && point > 50 else {
                return ["write point \(point): not killed"]
            }
            return try await Self.findings(directory, &account).map { "write point \(point): \($0)" }
        }
    }

    @Test("keeps what it acknowledged when it is killed again and again at any moment")
    func anyMoment() async throws {
        let rounds = 35
        try await Self.inParallel(4) { number in
            let directory = try TemporaryDirectory()
            var account = StoreAccount()
            var wrong: [String] = []
            var random = SystemRandomNumberGenerator()
            for round in 0..<rounds {
                let seed = Int.random(in: 0..<Int.max, using: &random)
                let agent = try AgentProcess("write", directory, account.acknowledgements, seed: seed)
                // The agent goes on while these lines are read, so that the kill meets it anywhere.
                for _ in 0..<Int.random(in: 0..<40, using: &random) {
                    if let line = agent.line() { account.read(line) }
                }
                agent.kill()
                for line in agent.lines() { account.read(line) }
                if !agent.wasKilled { wrong.append("round \(round): the agent ended by itself") }
                wrong += try await Self.findings(directory, &account).map { "vault \(number), round \(round): \($0)" }
            }
            if account.acknowledgements < rounds { wrong.append("hardly anything was done") }
            return wrong
        }
    }

    @Test("lets another process go on, which loses nothing either")
    func twoProcesses() async throws {
        let directory = try TemporaryDirectory()
        _ = try await directory.open()
        let victim = try AgentProcess("count", directory, 1_000_000)
        let survivor = try AgentProcess("count", directory, 60)
        var (victims, survivors) = (StoreAccount(), StoreAccount())
        while victims.acknowledgements < 20, let line = victim.line() { victims.read(line) }
        victim.kill()
        for line in victim.lines() { victims.read(line) }
        for line in survivor.lines() { survivors.read(line) }
        #expect(victim.wasKilled)
        #expect(survivor.endedWell)
        #expect(survivors.acknowledgements == 60)
        let vault = try await directory.open()
        let count = try #require(try await Int(vault.value("counter")?.value.reveal() ?? ""))
        let acknowledged = victims.acknowledgements + survivors.acknowledgements
        // What the victim was doing when it was killed may have been done.
        #expect([acknowledged, acknowledged + 1].contains(count))
        #expect(try await vault.value("counter")?.version == UInt64(count))
    }

    @Test("keeps its lease while other descriptors of the lock file are closed, and loses it with the process")
    func lease() async throws {
        let directory = try TemporaryDirectory()
        let vault = try await directory.open()
        let agent = try AgentProcess("hold", directory)
        #expect(agent.line() == "held")
        #expect(await code { _ = try await vault.lease("tokens", deadline: .distantPast) } == .busy)
        let other = try await vault.lease("other", deadline: .distantPast)
        await other.release()
        agent.kill()
        #expect(agent.wasKilled)
        let lease = try await vault.lease("tokens", deadline: .distantPast)
        await lease.release()
    }

    @Test("finds plaintext in a file when there is some")
    func searchFinds() async throws {
        let directory = try TemporaryDirectory()
        _ = try await directory.open()
        try Data([0] + Self.canary + [0]).write(to: directory.vault.appending(path: "oops"))
        var account = StoreAccount()
        #expect(try await Self.findings(directory, &account) == ["plaintext in oops"])
        account.secrets = ["lost": "value"]
        #expect(try await Self.findings(directory, &account).contains { $0.hasPrefix("found []") })
    }

    /// Runs `body` for each number, two at a time, and expects it to find nothing wrong.
    private static func inParallel(
        _ count: Int, _ body: @escaping @Sendable (Int) async throws -> [String]
    ) async throws {
        let wrong = try await withThrowingTaskGroup(of: [String].self) { group in
            for lane in 0..<2 {
                group.addTask {
                    var wrong: [String] = []
                    for number in stride(from: lane, to: count, by: 2) { wrong += try await body(number) }
                    return wrong
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(wrong == [])
    }
}
#endif
