#if Keyring && os(Linux)
import AssentCore
import AssentPlatform
import CKeyutils
import Foundation
import Glibc

/// A process that works on a store in the kernel's keyring and says what it does; see `KeyringProcessTests`.
///
/// Usage: `KeyringAgent MODE STORE LOCKS [NUMBER]`. It writes a line before each change (`begin NAME VALUE`, `-` for
/// none) and one after it (`ack NAME`).
@main
struct KeyringAgent {
    let store: KeyringSecretStore

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count >= 3, let mode = arguments.first else { exit(64) }
        let name = arguments[arguments.startIndex + 1]
        var locks: URL? = URL(filePath: arguments[arguments.startIndex + 2])
        let number = arguments.dropFirst(3).first.flatMap { Int($0) } ?? -1
        let isRoot = geteuid() == 0
        if mode == "starve", isRoot {
            // Root has a quota that all tests of this machine share; this user nobody else has.
            let other = 2_000_000_000 + uid_t(getpid())
            guard setgid(other) == 0, setuid(other) == 0 else { exit(71) }
            locks = nil
        }
        defer { if mode == "starve", isRoot { forgetUser() } }
        let agent = KeyringAgent(store: try KeyringSecretStore(store: name, lockDirectory: locks, lockTimeout: 300))
        switch mode {
        case "script":
            ChangePoints.arm(dyingBefore: number)
            try await agent.script()
        case "count": try await agent.count(number)
        case "flip": try await agent.flip()
        case "hold": try await agent.hold()
        case "probe": await agent.probe()
        case "starve": try await agent.starve()
        default: exit(64)
        }
    }

    /// Every kind of change once, on a store that is made here.
    private func script() async throws {
        try await change("one", to: "1")
        try await change("two", to: String(repeating: "2", count: 40_000))
        try await change("one", to: String(repeating: "3", count: 40_000))
        try await change("two", to: nil)
        say("begin * -")
        try await store.removeAll()
        say("ack *")
        try await change("one", to: "4")
        say("done")
    }

    private func change(_ name: String, to value: String?) async throws {
        say("begin \(name) \(value ?? "-")")
        try await store.update(name, to: value.map { Secret($0) }, expected: .any)
        say("ack \(name)")
    }

    /// Counts a number up together with others.
    private func count(_ limit: Int) async throws {
        var done = 0
        while done < limit {
            let stored = try await store.value("counter")
            let next = (stored.flatMap { Int($0.value.reveal()) } ?? 0) + 1
            do {
                try await store.update(
                    "counter", to: Secret("\(next)"), expected: stored.map { .exactly($0.version) } ?? .absent)
                done += 1
            } catch let error as SecretStoreError where error.code == .versionMismatch {}
        }
        say("done")
    }

    /// Puts one long value in the other's place, until it is killed.
    private func flip() async throws {
        for number in 1... {
            let value = [UInt8](repeating: UInt8(number % 251), count: 70_000)
            try await store.update("value", to: Secret(bytes: value), expected: .any)
            if number == 1 { say("ready") }
        }
    }

    private func hold() async throws {
        let lease = try await store.lease("tokens", deadline: .distantFuture)
        say("held")
        while true { pause() }
        await lease.release()
    }

    private func probe() async {
        if case .unavailable(let reason) = await store.availability {
            say("unavailable \(reason)")
        } else {
            say("available")
        }
        say(await code { _ = try await store.value("name") })
        say(await code { try await store.update("name", to: Secret("x"), expected: .any) })
    }

    /// Uses the user's quota up.
    private func starve() async throws {
        let value = Secret(bytes: [UInt8](repeating: 1, count: 3000))
        // What was replaced takes no quota, or this would end soon.
        for _ in 0..<30 { try await store.update("kept", to: value, expected: .any) }
        var others = 0
        var failure = ""
        while others < 200, failure.isEmpty || failure == "done" {
            failure = await code { try await store.update("other \(others)", to: value, expected: .absent) }
            others += 1
        }
        say("\(others > 1 && others < 10) \(failure)")
        say(
            await code {
                try await store.update("kept", to: Secret(bytes: [UInt8](repeating: 2, count: 19_000)), expected: .any)
            })
        let kept = try await store.value("kept")
        say("\(kept?.value == value) \(kept?.version ?? 0) \(try await store.names().count == others)")
        for number in 0..<others { try await store.update("other \(number)", to: nil, expected: .any) }
        try await store.update("kept", to: value, expected: .exactly(30))
        say("\(try await store.names())")
        try await store.removeAll()
        say("done")
    }

    /// Leaves nothing of a user who was made up: neither the lock's directory nor the keyrings that the kernel made.
    private static func forgetUser() {
        try? FileManager.default.removeItem(atPath: "/dev/shm/assent-keyring-\(geteuid())")
        // By number: to name one of them makes both.
        let rings = [KEY_SPEC_USER_KEYRING, KEY_SPEC_USER_SESSION_KEYRING].map { keyctl_get_keyring_ID($0, 0) }
        for ring in rings.reversed() { keyctl_invalidate(ring) }
    }

    private func code(_ body: () async throws -> Void) async -> String {
        do {
            try await body()
            return "done"
        } catch let error as SecretStoreError {
            return "\(error.code)"
        } catch {
            return "\(error)"
        }
    }

    private func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
#else
@main
struct KeyringAgent {
    static func main() {}
}
#endif
