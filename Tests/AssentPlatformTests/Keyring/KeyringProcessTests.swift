#if Keyring && os(Linux)
import AssentCore
import AssentPeers
import Foundation
import Spawning
import Testing

@testable import AssentPlatform

@Suite("Processes that share a store in the kernel's keyring")
struct KeyringProcessTests {
    private static func lines(_ agent: ChildProcess) -> [String] {
        Array(sequence(state: ()) { _ in agent.line() })
    }

    @Test("lose no update to each other", .timeLimit(.minutes(2)))
    func twoProcesses() async throws {
        let keyring = try TestKeyring()
        let agents = try [keyring.agent("count", 40), keyring.agent("count", 40)]
        for agent in agents { #expect(agent.line() == "done") }
        let stored = try await keyring.open().value("counter")
        #expect(stored?.value == Secret("80"))
        #expect(stored?.version == 80)
    }

    @Test("exclude each other by leases, which end with the process", .timeLimit(.minutes(1)))
    func lease() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        let agent = try keyring.agent("hold")
        #expect(agent.line() == "held")
        #expect(await storeCode { _ = try await store.lease("tokens", deadline: .distantPast) } == .busy)
        let other = try await store.lease("other", deadline: .distantPast)
        await other.release()
        agent.stop()
        let lease = try await store.lease("tokens", deadline: .distantPast)
        await lease.release()
    }

    @Test("see the old value or the new one, never half of it and never none", .timeLimit(.minutes(1)))
    func neverHalf() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        let agent = try keyring.agent("flip")
        #expect(agent.line() == "ready")
        var values: Set<UInt8> = []
        var highest: UInt64 = 0
        for _ in 0..<20_000 where values.count < 40 {
            let stored = try #require(try await store.value("value"))
            let bytes = stored.value.revealBytes()
            let first = try #require(bytes.first)
            #expect(bytes == [UInt8](repeating: first, count: 70_000))
            #expect(stored.version >= highest)
            highest = stored.version
            values.insert(first)
            #expect(try await store.names() == ["value"])
        }
        #expect(values.count >= 40)
        agent.stop()
        #expect(try await store.value("value") != nil)
    }

    /// What an agent said that it did.
    private struct Account {
        var secrets: [String: String] = [:]
        var begun: (name: String, value: String?)?

        mutating func read(_ line: String) {
            let words = line.split(separator: " ").map(String.init)
            if words.first == "begin", words.count == 3 { begun = (words[1], words[2] == "-" ? nil : words[2]) }
            if words.first == "ack" {
                secrets = afterBegun
                begun = nil
            }
        }

        var afterBegun: [String: String] {
            guard let begun else { return secrets }
            if begun.name == "*" { return [:] }
            var secrets = secrets
            secrets[begun.name] = begun.value
            return secrets
        }
    }

    @Test(
        "and are killed before any change to a key: what was acknowledged is there, and nothing else is",
        .timeLimit(.minutes(5)))
    func killed() async throws {
        let whole = try TestKeyring()
        let trace = try withExtendedLifetime(whole) { Self.lines(try whole.agent("trace")) }
        #expect(trace.last == "done")
        let points = trace.count { $0.hasPrefix("step ") }
        #expect(points > 40)
        var kills = 0
        for point in 0..<points {
            let keyring = try TestKeyring()
            let lines = Self.lines(try keyring.agent("script", point))
            if lines.last != "done" { kills += 1 }
            var account = Account()
            for line in lines { account.read(line) }
            let store = try keyring.open()
            var found: [String: String] = [:]
            for name in try await store.names() { found[name] = try await store.value(name)?.value.reveal() }
            #expect(found == account.secrets || found == account.afterBegun, "before change \(point)")
            let members = try keyring.inStore { store, _ in try store.members().count }
            #expect(members ?? 1 == found.count + 1, "something is left, change \(point)")
            // The next one goes on.
            let version = try await store.update("one", to: Secret("next"), expected: .any)
            #expect(version > UInt64(account.secrets["one"] == nil ? 0 : 1))
            #expect(try await store.value("one")?.value == Secret("next"))
        }
        #expect(kills == points)
    }

    @Test(
        "use up the user's quota: an error of its own, the old value stays, and removing helps", .timeLimit(.minutes(1))
    )
    func quota() throws {
        let keyring = try TestKeyring()
        let lines = Self.lines(try keyring.agent("starve"))
        #expect(
            lines == [
                "true quotaExceeded", "quotaExceeded", "true 30 true", "[\"kept\"]", "done",
            ])
    }

    @Test("may be forbidden to use keyrings, and are told what to do", arguments: [ENOSYS, EPERM])
    func forbidden(_ error: Int32) throws {
        let keyring = try TestKeyring()
        let launcher = keyring.locks.path("forbid-keyrings")
        let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "forbid-keyrings.c")
        let compiler = try FinishedProcess.run(
            "/usr/bin/env", ["clang", "-o", launcher, source.path(percentEncoded: false)])
        #expect(compiler.status == 0, "\(compiler.complaints)")
        let locks = keyring.locks.url.path(percentEncoded: false)
        let agent = try ChildProcess(launcher, ["\(error)", TestKeyring.agent, "probe", keyring.name, locks])
        let lines = Self.lines(agent)
        try #require(lines.count == 3)
        #expect(lines[0].hasPrefix("unavailable "))
        #expect(lines[0].contains("seccomp"))
        #expect(lines[1...] == ["storeUnavailable", "storeUnavailable"])
    }
}
#endif
