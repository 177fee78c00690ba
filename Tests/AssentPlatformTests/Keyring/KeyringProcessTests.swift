#if Keyring && os(Linux)
import AssentCore
import AssentPeers
import Foundation
import TestSupport
import Testing

@testable import AssentPlatform

@Suite("Processes that share a store in the kernel's keyring")
struct KeyringProcessTests {
    @Test("lose no update to each other")
    func twoProcesses() async throws {
        let keyring = try TestKeyring()
        try await keyring.withAgent("count", 40) { one in
            try await keyring.withAgent("count", 40) { other in
                #expect(one.line() == "done")
                #expect(other.line() == "done")
            }
        }
        let stored = try await keyring.open().value("counter")
        #expect(stored?.value == Secret("80"))
        #expect(stored?.version == 80)
    }

    @Test("exclude each other by leases, which end with the process")
    func lease() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        try await keyring.withAgent("hold") { agent in
            #expect(agent.line() == "held")
            #expect(await storeCode { _ = try await store.lease("tokens", deadline: .distantPast) } == .busy)
            let other = try await store.lease("other", deadline: .distantPast)
            await other.release()
        }
        let lease = try await store.lease("tokens", deadline: .distantPast)
        await lease.release()
    }

    @Test("see the old value or the new one, never half of it and never none")
    func neverHalf() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        try await keyring.withAgent("flip") { agent in
            #expect(agent.line() == "ready")
            var values: Set<UInt8> = []
            var highest: UInt64 = 0
            try await Patience.wait(until: "forty values were seen") {
                let stored = try #require(try await store.value("value"))
                let bytes = stored.value.revealBytes()
                let first = try #require(bytes.first)
                #expect(bytes == [UInt8](repeating: first, count: 70_000))
                #expect(stored.version >= highest)
                highest = stored.version
                values.insert(first)
                #expect(try await store.names() == ["value"])
                return values.count >= 40
            }
        }
        #expect(try await store.value("value") != nil)
    }

    @Test(
        "and are killed before any change to a key: what was acknowledged is there, and nothing else is")
    func killed() async throws {
        // How many changes it takes is not the same each time: all tests share a quota, and what finds it used up tries
        // again. So it is killed one change later each time, until it is not.
        var isDone = false
        for point in 0..<1_000 where !isDone {
            let keyring = try TestKeyring()
            let lines = try keyring.lines("script", point)
            isDone = lines.last == "done"
            #expect(!isDone || point > 40)
            var account = StoreAccount()
            for line in lines { account.read(line) }
            let store = try keyring.open()
            var found: [String: String] = [:]
            for name in try await store.names() { found[name] = try await store.value(name)?.value.reveal() }
            #expect(found == account.secrets || found == account.afterBegun, "before change \(point)")
            let members = try keyring.inStore { store, _ in try store.members().count }
            #expect(members ?? 1 == found.count + 1, "something is left, change \(point)")
            // The next one goes on, and gives out no version again, also when what was killed is damaged besides.
            let seen = try await store.value("one")?.version ?? 0
            if seen > 0 { try keyring.inKey("head", of: "one") { try $0.update([1]) } }
            let version = try await store.update("one", to: Secret("next"), expected: .any)
            #expect(version > max(seen, account.secrets["one"] == nil ? 0 : 1), "before change \(point)")
            #expect(try await store.value("one")?.value == Secret("next"))
        }
        #expect(isDone)
    }

    @Test(
        "use up the user's quota: an error of its own, the old value stays, and removing helps"
    )
    func quota() async throws {
        let keyring = try TestKeyring()
        let user = try await keyring.withAgent("starve") { agent in
            let lines = Array(sequence(state: ()) { _ in agent.line() })
            #expect(
                lines == [
                    "true quotaExceeded", "quotaExceeded", "true 30 true", "[\"kept\"]", "done",
                ])
            return 2_000_000_000 + Int(agent.id)
        }
        guard geteuid() == 0 else { return }
        // The user that the agent made up leaves no keyring, as soon as the kernel has swept.
        try await Patience.wait(until: "the kernel has swept") {
            try !String(contentsOfFile: "/proc/key-users", encoding: .utf8).contains("\(user):")
        }
    }

    @Test("may be forbidden to use keyrings, and are told what to do", arguments: [ENOSYS, EPERM])
    func forbidden(_ error: Int32) throws {
        let keyring = try TestKeyring()
        let launcher = keyring.locks.path("forbid-keyrings")
        let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "forbid-keyrings.c")
        let compiler = try FinishedProcess.run(
            "/usr/bin/env", ["clang", "-o", launcher, source.path(percentEncoded: false)])
        #expect(compiler.status == 0, "\(compiler.complaints)")
        let lines = try keyring.lines("probe", launchedBy: launcher, "\(error)")
        try #require(lines.count == 3)
        #expect(lines[0].hasPrefix("unavailable "))
        #expect(lines[0].contains("seccomp"))
        #expect(lines[1...] == ["storeUnavailable", "storeUnavailable"])
    }
}
#endif
