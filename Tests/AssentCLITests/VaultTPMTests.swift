#if TPM && os(Linux)
import Assent
import AssentCore
import AssentPeers
import AssentVault
import Foundation
import Testing

@testable import AssentCLI

@Suite("assent vault with a TPM")
struct VaultTPMTests {
    /// A home directory with a vault under a key file, and a TPM.
    private struct Bench {
        let home: VaultCommandTests.Home
        let tpm: SwTPM
        let pin: String

        init() async throws {
            home = try VaultCommandTests.Home()
            tpm = try SwTPM(in: home.directory.appending(path: "chip"))
            pin = try home.file("pin", "271828\n")
            try await home.fill()
        }

        @discardableResult
        func moveIn() throws -> String {
            let moved = try home.run(
                "vault", "rekey", "--to", "tpm", "--tcti", tpm.tcti, "--new-passphrase-file", pin)
            #expect(moved.status == 0, "\(moved.err)")
            return moved.out
        }

        var choice: URL { home.directory.appending(path: "config/assent/default.vault.yaml") }
        var main: Data { get throws { try Data(contentsOf: home.vault.appending(path: "vault")) } }
    }

    @Test("rekey moves a vault into a TPM, where only the PIN opens it and an old copy is noticed, and out again")
    func moves() async throws {
        let bench = try await Bench()
        let (home, pin) = (bench.home, bench.pin)
        let moved = try bench.moveIn()
        #expect(moved.contains("hardware (tpm2)") && moved.contains("protection level requireHardware"))
        #expect(moved.contains("an old copy of the whole vault is noticed"))
        #expect(try home.run("vault", "list", "--passphrase-file", pin).out.contains("tokens  version 1"))
        // Nobody to ask is an error, not a way in; and what it says is ours alone.
        let unasked = try home.run("vault", "list")
        #expect(unasked.status == 1 && unasked.err.contains("--passphrase-file"))
        #expect(!unasked.err.contains("esys") && !unasked.err.contains("tcti"), "\(unasked.err)")
        #expect(!(try String(contentsOf: bench.choice, encoding: .utf8)).contains("271828"))

        let copy = home.directory.appending(path: "copy")
        try FileManager.default.copyItem(at: home.vault, to: copy)
        let again = try home.run("vault", "rekey", "--passphrase-file", pin)
        #expect(again.status == 0, "\(again.err)")
        let json = try JSONValue.parse(
            Array(home.run("vault", "check", "--json", "--passphrase-file", pin).out.utf8))
        #expect(json["vault"]?["provider"]?.string == "tpm2" && json["vault"]?["rollbackProtected"] == true)
        #expect(json["intact"] == .integer(2) && json["inOrder"] == true)

        // An old copy of everything, wrapped keys included: its counter went with its key.
        try FileManager.default.moveItem(at: home.vault, to: home.directory.appending(path: "newest"))
        try FileManager.default.copyItem(at: copy, to: home.vault)
        let old = try home.run("vault", "list", "--passphrase-file", pin)
        #expect(old.status == 1 && old.err.contains("counter against rollback"), "\(old.err)")
        try FileManager.default.removeItem(at: home.vault)
        try FileManager.default.moveItem(at: home.directory.appending(path: "newest"), to: home.vault)

        let back = try home.run(
            "vault", "rekey", "--passphrase-file", pin, "--to", "key-file", "--new-key-file", home.keyFile.path)
        #expect(back.status == 0, "\(back.err)")
        #expect(try home.run("vault", "list").out.contains("tokens  version 1"))
    }

    @Test("Each way in which a TPM refuses has an error of its own, and nothing else takes its place")
    func refusals() async throws {
        let bench = try await Bench()
        let (home, tpm, pin) = (bench.home, bench.tpm, bench.pin)
        let wrong = try home.file("wrong", "314159")
        try bench.moveIn()
        try tpm.tool("tpm2_dictionarylockout", ["-s", "-n", "4", "-t", "1000", "-l", "1000"])
        let before = try bench.main

        let refused = try home.run("vault", "list", "--passphrase-file", wrong)
        #expect(refused.err.contains("wrongKey") && refused.err.contains("tries are left"), "\(refused.err)")
        let client = try home.run("token", "-c", try home.client(), "--passphrase-file", wrong)
        #expect(client.status == 1 && client.err.contains("PIN is wrong"), "\(client.err)")
        for _ in 0..<4 { _ = try home.run("vault", "list", "--passphrase-file", wrong) }
        let locked = try home.run("vault", "check", "--json", "--passphrase-file", pin)
        #expect(try JSONValue.parse(Array(locked.out.utf8))["error"]?.string == "keyLocked")
        #expect(locked.err.contains("tpm2_dictionarylockout"))
        try tpm.tool("tpm2_dictionarylockout", ["--clear-lockout"])
        #expect(try home.run("vault", "list", "--passphrase-file", pin).status == 0)

        tpm.stop()
        for arguments in [["vault", "list"], ["vault", "rekey"], ["token", "-c", try home.client()]] {
            let gone = try home.run(arguments + ["--passphrase-file", pin])
            #expect(gone.status == 1 && gone.err.contains("There is no TPM at"), "\(gone.err)")
        }
        try tpm.clear()
        let cleared = try home.run("vault", "list", "--passphrase-file", pin)
        #expect(cleared.err.contains("keyLost"), "\(cleared.err)")
        #expect(try bench.main == before)
    }

    @Test("A TPM that cannot guard a vault is an error, and the vault stays under the key that it has")
    func cannot() async throws {
        let bench = try await Bench()
        let home = bench.home
        let before = try bench.main
        let missing = try home.run(
            "vault", "rekey", "--to", "tpm", "--tcti", "device:/nonexistent/tpm", "--new-passphrase-file", bench.pin)
        #expect(
            missing.status == 1 && missing.err.contains("keyUnavailable") && missing.err.contains("/nonexistent/tpm"))
        let unasked = try home.run("vault", "rekey", "--to", "tpm", "--tcti", bench.tpm.tcti)
        #expect(unasked.status == 1 && unasked.err.contains("--new-passphrase-file"), "\(unasked.err)")
        try bench.tpm.tool("tpm2_changeauth", ["-c", "owner", "of the owner"])
        let owned = try home.run(
            "vault", "rekey", "--to", "tpm", "--tcti", bench.tpm.tcti, "--new-passphrase-file", bench.pin)
        #expect(owned.status == 1 && owned.err.contains("owner hierarchy has a password"), "\(owned.err)")
        let handle = try home.run(
            "vault", "rekey", "--to", "tpm", "--tcti", bench.tpm.tcti, "--tpm-parent", "0x81000007",
            "--new-passphrase-file", bench.pin)
        #expect(handle.status == 1 && handle.err.contains("no persistent key"), "\(handle.err)")
        #expect(try bench.main == before)
        #expect(try home.run("vault", "list").out.contains("tokens  version 1"))
    }

    @Test("What an interrupted change left in the vault's directory, under another PIN, is not in the way")
    func leftovers() async throws {
        let bench = try await Bench()
        let left = TPMKeyProvider(
            directory: bench.home.vault.appending(path: "tpm"), tcti: bench.tpm.tcti, pin: KnownSecret(Secret("other")))
        _ = try await left.makeSigningKey(named: "vault-left-over", algorithm: .es256)
        try bench.moveIn()
        #expect(try await !left.keyNames().contains("vault-left-over"))
        #expect(try bench.home.run("vault", "check", "--passphrase-file", bench.pin).status == 0)
    }

    @Test("Without a PIN the machine opens it by itself; a vault in a TPM does not change its PIN in place")
    func withoutPIN() async throws {
        let bench = try await Bench()
        let home = bench.home
        let moved = try home.run("vault", "rekey", "--to", "tpm", "--tcti", bench.tpm.tcti, "--without-pin")
        #expect(moved.status == 0, "\(moved.err)")
        #expect(try home.run("vault", "list").out.contains("tokens  version 1"))
        let other = try home.run(
            "vault", "rekey", "--to", "tpm", "--tcti", bench.tpm.tcti, "--new-passphrase-file", bench.pin)
        #expect(other.status == 64 && other.err.contains("--to passphrase"))
        #expect(try home.run("vault", "rekey", "--new-passphrase-file", bench.pin).status == 64)
        #expect(try home.run("vault", "check").status == 0)
    }

    @Test("An app's vault in a TPM is checked by a file that says what guards it, and a file with a mistake is refused")
    func appVault() async throws {
        let bench = try await Bench()
        let (home, directory) = (bench.home, bench.home.directory.appending(path: "app"))
        // As the SDK's `.tpm(…)` has it.
        let keys = TPMKeyProvider(
            directory: directory.appending(path: "tpm"), tcti: bench.tpm.tcti, pin: KnownSecret(Secret("271828")))
        _ = try await FileVault.open(directory, store: "wallet", keys: .requireHardware(keys), lockTimeout: 300)
        let chosen = try home.file("keys.yaml", "provider: tpm\ntcti: \"\(bench.tpm.tcti)\"\n")
        let place = ["--directory", directory.path, "--store", "wallet", "--passphrase-file", bench.pin]
        let checked = try home.run(["vault", "check", "--keys", chosen] + place)
        #expect(checked.status == 0, "\(checked.err)")
        let rekeyed = try home.run(["vault", "rekey", "--keys", chosen] + place)
        #expect(rekeyed.status == 0, "\(rekeyed.err)")
        #expect(try home.run(["vault", "list"] + place).err.contains("protectionMismatch"))
        let mistake = try home.file("mistake.yaml", "provider: tpm\nparent: 5\n")
        #expect(try home.run(["vault", "list", "--keys", mistake] + place).status == 78)
        #expect(try home.run(["vault", "list", "--keys", "/nonexistent"] + place).status == 78)
    }

    @Test(
        "What guards a vault is read as it was written",
        arguments: [
            TPMKind(), TPMKind(tcti: "tabrmd: \"x\"", parent: 0x8100_0001, hasPIN: false),
            PKCS11Kind(module: "/a b.so", token: "x: y"), KeyFileKind(path: "/k\n"), PassphraseKind(),
        ] as [any KeyProviderKind])
    func file(_ kind: any KeyProviderKind) throws {
        #expect(try KeyProviderKinds.parse(kind.file, file: "x.yaml").isSame(as: kind))
    }
}
#endif
