import AssentCore
import AssentVault
import Foundation

/// A process that works on a vault and says what it does, so that a test can kill it; see `KillTests`.
///
/// Usage: `VaultAgent MODE DIRECTORY [NUMBER] [SEED]`. It writes a line before each change (`begin NAME VALUE`, `-` for
/// none) and one after it (`ack NAME`), and ends when its standard input does.
@main
struct VaultAgent {
    /// What every value has in it, so that a search of the files for plaintext has something to look for.
    static let canary = "plaintext-canary"

    let directory: URL

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard let mode = arguments.first, let directory = arguments.dropFirst().first else { exit(64) }
        let number = arguments.dropFirst(2).first.flatMap { Int($0) } ?? -1
        let seed = arguments.dropFirst(3).first.flatMap { UInt64($0) } ?? 0
        let agent = VaultAgent(directory: URL(filePath: directory))
        switch mode {
        case "script":
            // Dies before write point `number`; an odd seed lets half of a write through.
            WritePoints.arm(dyingBefore: number, tearing: !seed.isMultiple(of: 2), telling: false)
            try await agent.script()
        case "trace":
            WritePoints.arm(dyingBefore: -1, tearing: false, telling: true)
            try await agent.script()
        case "write": try await agent.writeForever(from: number, seed: seed)
        case "count": try await agent.count(upTo: number)
        case "hold": try await agent.hold()
        default: exit(64)
        }
    }

    private func open() async throws -> FileVault {
        try await FileVault.open(
            directory.appending(path: "vault"),
            keys: .software(
                SoftwareKeyProvider(unprotectedFile: directory.appending(path: "vault.key"), lockTimeout: 3600)),
            lockTimeout: 3600)
    }

    /// Every kind of change once, on a vault that is made here.
    private func script() async throws {
        let vault = try await open()
        try await change("one", to: "1", of: vault)
        try await change("two", to: "2", of: vault)
        try await change("one", to: "3", of: vault)
        try await change("two", to: nil, of: vault)
        say("begin * -")
        try await vault.removeAll()
        say("ack *")
        try await change("one", to: "4", of: vault)
        say("done")
    }

    /// Changes in a random order, until it is killed.
    private func writeForever(from start: Int, seed: UInt64) async throws {
        let vault = try await open()
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        for number in start... {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let name = "name-\((state >> 33) % 5)"
            try await change(name, to: (state >> 40) % 4 == 0 ? nil : "\(number)", of: vault)
        }
    }

    /// Counts a number in the vault up together with others.
    private func count(upTo limit: Int) async throws {
        let vault = try await open()
        var done = 0
        while done < limit {
            let stored = try await vault.value("counter")
            let next = (stored.flatMap { Int($0.value.reveal()) } ?? 0) + 1
            do {
                say("begin counter \(next)")
                try await vault.update(
                    "counter", to: Secret("\(next)"), expected: stored.map { .exactly($0.version) } ?? .absent)
                say("ack counter")
                done += 1
            } catch let error as SecretStoreError where error.code == .versionMismatch {
                say("lost counter")
            }
        }
    }

    /// Holds a lease while it opens and closes other descriptors of the lock file, until standard input ends.
    private func hold() async throws {
        let vault = try await open()
        let lease = try await vault.lease("tokens", deadline: .distantFuture)
        for number in 0..<3 {
            let other = try await open()
            try await other.update("name", to: Secret("\(number)"), expected: .any)
        }
        say("held")
        _ = FileHandle.standardInput.availableData
        await lease.release()
        say("released")
    }

    private func change(_ name: String, to value: String?, of vault: FileVault) async throws {
        let value = value.map { "\(Self.canary)-\($0)" }
        say("begin \(name) \(value ?? "-")")
        try await vault.update(name, to: value.map { Secret($0) }, expected: .any)
        say("ack \(name)")
    }

    private func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}
