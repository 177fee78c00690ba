#if os(Linux)
import Assent
import AssentCore
import AssentVault
import Foundation
import Testing

@testable import AssentCLI

@Suite("What guards a vault, after a change of that which failed or was interrupted")
struct VaultChoiceTests {
    private struct Bench {
        let home: VaultCommandTests.Home
        let passphrase: String

        init() async throws {
            home = try VaultCommandTests.Home()
            passphrase = try home.file("passphrase", "correct horse")
            try await home.fill()
        }

        var choice: URL { home.directory.appending(path: "config/assent/default.vault.yaml") }
        var announced: URL { URL(fileURLWithPath: choice.path + ".new") }
        var isAnnounced: Bool { FileManager.default.fileExists(atPath: announced.path) }

        /// What a process that was killed leaves beside the choice.
        func announce(_ keyProvider: any KeyProviderKind, keyChange: UInt32) throws {
            try FileManager.default.createDirectory(
                at: choice.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(PendingKeyChange(keyProvider: keyProvider, keyChange: keyChange).yaml.utf8).write(to: announced)
        }

        func keyChanges() throws -> UInt32 {
            let info = try FileVault.inspect(home.vault)
            return try #require(info).claimed.keyChanges
        }

        func doctor() throws -> (status: Int32, out: String, err: String) {
            try home.run("doctor", "-c", try home.client())
        }
    }

    @Test("A change that fails leaves the vault, the choice and the directory as they were", arguments: [false, true])
    func failed(_ isInKeyFile: Bool) async throws {
        let bench = try await Bench()
        let home = bench.home
        let record = try #require(
            FileManager.default.contentsOfDirectory(atPath: home.vault.path).first { $0.hasPrefix("r-") })
        try Data([1, 2, 3]).write(to: home.vault.appending(path: record))
        let before = try Set(FileManager.default.contentsOfDirectory(atPath: home.vault.path))
        let newKey = home.directory.appending(path: "new.key").path
        let failed = try home.run(
            ["vault", "rekey", "--to"]
                + (isInKeyFile
                    ? ["key-file", "--new-key-file", newKey]
                    : ["passphrase", "--new-passphrase-file", bench.passphrase]))
        #expect(failed.status == 1 && failed.err.contains("truncated"), "\(failed.err)")
        #expect(!bench.isAnnounced)
        #expect(!FileManager.default.fileExists(atPath: bench.choice.path))
        #expect(!FileManager.default.fileExists(atPath: newKey))
        let after = try Set(FileManager.default.contentsOfDirectory(atPath: home.vault.path))
        let locks: Set = ["vault.lock", VaultFileNames.passphraseKeys + ".lock"]
        #expect(after.subtracting(locks) == before.subtracting(locks))
        #expect(try home.run("vault", "list").out.contains("tokens  version 1"))
        #expect(try bench.doctor().status == 0)
    }

    @Test(
        "A change that was interrupted before it took effect has no effect; doctor reports it, check and rekey revert it"
    )
    func before() async throws {
        let bench = try await Bench()
        let home = bench.home
        let other = home.directory.appending(path: "other.key").path
        for keyProvider: any KeyProviderKind in [PassphraseKind(), KeyFileKind(path: other)] as [any KeyProviderKind] {
            for command in [["check"], ["rekey"]] {
                let changes = try bench.keyChanges()
                try bench.announce(keyProvider, keyChange: changes + 1)
                #expect(try home.run("vault", "list").out.contains("tokens  version 1"))
                let told = try bench.doctor()
                #expect(told.status == 78 && told.out.contains("assent vault check"), "\(told.out)")
                let done = try home.run(["vault"] + command)
                #expect(done.status == 0, "\(done.err)")
                #expect((done.out + done.err).contains("never took effect"))
                #expect(!bench.isAnnounced)
                #expect(try bench.doctor().status == 0)
                #expect(try home.run("vault", "list").out.contains("tokens  version 1"))
            }
        }
        #expect(!FileManager.default.fileExists(atPath: bench.choice.path))
    }

    @Test("A change that was interrupted after it took effect is found and finished, also from key file to key file")
    func after() async throws {
        let bench = try await Bench()
        let home = bench.home
        let other = home.directory.appending(path: "other.key").path
        let changes: [(any KeyProviderKind, [String], [String])] = [
            (KeyFileKind(path: other), ["--to", "key-file", "--new-key-file", other], []),
            (
                PassphraseKind(), ["--to", "passphrase", "--new-passphrase-file", bench.passphrase],
                ["--passphrase-file", bench.passphrase]
            ),
        ]
        for (keyProvider, change, secret) in changes {
            let former = try? Data(contentsOf: bench.choice)
            #expect(try home.run(["vault", "rekey"] + change).status == 0)
            // As if the process had been killed before its last step.
            let keyChange = try bench.keyChanges()
            try FileManager.default.removeItem(at: bench.choice)
            if let former { try former.write(to: bench.choice) }
            try bench.announce(keyProvider, keyChange: keyChange)
            #expect(try home.run(["vault", "list"] + secret).out.contains("tokens  version 1"))
            #expect(try bench.doctor().status == 78)
            let checked = try home.run(["vault", "check"] + secret)
            #expect(checked.status == 0 && checked.out.contains("is finished now"), "\(checked.out) \(checked.err)")
            #expect(!bench.isAnnounced)
            #expect(try bench.doctor().status == 0)
            #expect(try home.run(["vault", "list"] + secret).out.contains("tokens  version 1"))
            let file = bench.choice.path
            #expect(
                try KeyProviderKinds.parse(String(contentsOfFile: file, encoding: .utf8), file: file)
                    .isSame(as: keyProvider))
        }
    }

    @Test("A vault that was exchanged cannot choose the other key by counting further")
    func exchanged() async throws {
        let bench = try await Bench()
        let home = bench.home
        try bench.announce(PassphraseKind(), keyChange: 2)
        let directory = home.directory.appending(path: "forged")
        let keys = SoftwareKeyProvider(
            file: directory.appending(path: VaultFileNames.passphraseKeys),
            passphrase: KnownSecret(Secret("of somebody else")))
        let forged = try await FileVault.open(directory, store: "default", keys: .software(keys))
        _ = try await forged.rekey(to: .software(keys))
        try FileManager.default.removeItem(at: home.vault)
        try FileManager.default.moveItem(at: directory, to: home.vault)
        for command in ["list", "check", "rekey"] {
            let refused = try home.run("vault", command, "--passphrase-file", bench.passphrase)
            #expect(refused.status == 1 && refused.err.contains("wrongKey"), "\(refused.err)")
        }
        #expect(bench.isAnnounced)
    }

    @Test("Two changes at a time take turns: one key provider is chosen, and it opens the vault", arguments: 0..<4)
    func concurrent(_ round: Int) async throws {
        let bench = try await Bench()
        let home = bench.home
        let other = try home.file("other", "battery staple")
        let key = home.directory.appending(path: "b.key").path
        let changes = [
            ["--to", "passphrase", "--new-passphrase-file", bench.passphrase],
            round % 2 == 0
                ? ["--to", "passphrase", "--new-passphrase-file", other] : ["--to", "key-file", "--new-key-file", key],
        ]
        let statuses = try await withThrowingTaskGroup(of: (Int, Int32).self) { group in
            for (number, change) in changes.enumerated() {
                group.addTask { (number, try home.run(["vault", "rekey"] + change).status) }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(statuses.values.contains(0))
        #expect(!bench.isAnnounced)
        let isFirst = statuses[0] == 0
        if round % 2 == 0 { #expect(statuses[isFirst ? 1 : 0] == 1) }
        let opening =
            isFirst ? ["--passphrase-file", bench.passphrase] : round % 2 == 0 ? ["--passphrase-file", other] : []
        let listed = try home.run(["vault", "list"] + opening)
        #expect(listed.status == 0 && listed.out.contains("tokens  version 1"), "\(listed.err)")
    }

    @Test("What was announced is read as it was written, and a file with a mistake is refused")
    func file() throws {
        let pending = PendingKeyChange(keyProvider: KeyFileKind(path: "/k: x\n"), keyChange: .max)
        let read = try PendingKeyChange.parse(pending.yaml, file: "x")
        #expect(read.keyProvider.isSame(as: pending.keyProvider) && read.keyChange == .max)
        for text in ["", "provider: passphrase\n", "provider: passphrase\nkeyChange: 0\n", pending.yaml + "more: 1\n"] {
            #expect(throws: (any Error).self) { try PendingKeyChange.parse(text, file: "x") }
        }
    }
}
#endif
