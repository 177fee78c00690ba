#if TPM && PKCS11 && os(Linux)
import Assent
import AssentCore
import AssentPeers
import Foundation
import Testing
import TestSupport

@testable import AssentCLI

@Suite("assent doctor and what guards a vault")
struct DoctorVaultTests {
    private func doctor(_ home: VaultCommandTests.Home) throws -> (status: Int32, out: String, json: JSONValue) {
        let client = try home.client()
        let (text, json) = (try home.run("doctor", "-c", client), try home.run("doctor", "-c", client, "--json"))
        #expect(text.status == json.status)
        return (text.status, text.out, try JSONValue.parse(Array(json.out.utf8)))
    }

    private func provider(_ json: JSONValue, _ kind: String, _ place: String? = nil) -> JSONValue? {
        json["keyProviders"]?.array?.first {
            $0["kind"]?.string == kind && (place == nil || $0["place"]?.string?.contains(place ?? "") == true)
        }
    }

    @Test("doctor lists every kind of key provider, and each that is not available with the reason and what to do")
    func kinds() async throws {
        let home = try VaultCommandTests.Home()
        try await home.fill()
        let found = try doctor(home)
        #expect(found.status == 0, "\(found.out)")
        let kinds = Set(found.json["keyProviders"]?.array?.compactMap { $0["kind"]?.string } ?? [])
        #expect(kinds == ["key-file", "passphrase", "pkcs11", "tpm", "secure-enclave"])
        let file = provider(found.json, "key-file")
        #expect(file?["protection"]?.string == "unprotected" && file?["guardsVault"] == true)
        #expect(provider(found.json, "passphrase")?["available"] == true)
        #expect(provider(found.json, "secure-enclave")?["reason"]?.string?.contains("Apple") == true)
        for provider in found.json["keyProviders"]?.array ?? [] {
            #expect((provider["available"] == true) == (provider["reason"] == .null))
        }
        #expect(
            found.json["vault"]?["level"]?.string == "software" && found.json["vault"]?["keyProvider"] == "key-file")
        #expect(found.json["vault"]?["rollbackProtected"] == false)
        #expect(found.out.contains("(unprotected), guards the vault: available"))
        #expect(found.out.contains("key provider secure-enclave (hardware): not available: Only Apple"))
    }

    #if Keyring
    @Test("The kernel's keyring is listed as a store, available or with the reason and what to do")
    func keyring() async throws {
        let home = try VaultCommandTests.Home()
        let here = try doctor(home)
        let store = here.json["secretStores"]?.array?.first
        #expect(store?["kind"] == "kernel-keyring" && store?["sealed"] == false)
        #expect((store?["available"] == true) == (store?["reason"] == .null))
        #expect(here.out.contains("secret store kernel-keyring (in the kernel's memory, not sealed): "))

        let launcher = home.directory.appending(path: "forbid-keyrings")
        let source = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "AssentPlatformTests/Keyring/forbid-keyrings.c")
        let compiler = try FinishedProcess.run("/usr/bin/env", ["clang", "-o", launcher.path, source.path])
        #expect(compiler.status == 0, "\(compiler.complaints)")
        let arguments = ["\(EPERM)", home.program.path, "doctor", "-c", try home.client()]
        let forbidden = try home.run(launcher, arguments + ["--json"])
        #expect(forbidden.status == 0, "\(forbidden.err)")
        let refused = try JSONValue.parse(Array(forbidden.out.utf8))["secretStores"]?.array?.first
        #expect(refused?["available"] == false && refused?["reason"]?.string?.contains("seccomp") == true)
        #expect(
            try home.run(launcher, arguments).out.contains("not sealed): not available: The kernel, or the sandbox"))
    }
    #endif

    @Test("doctor names the TPM that guards the vault, with its counter; one that is gone or locked is a problem")
    func tpm() async throws {
        let home = try VaultCommandTests.Home()
        try await home.fill()
        let tpm = try SwTPM(in: home.directory.appending(path: "chip"))
        let pin = try home.file("pin", "271828")
        #expect(
            try home.run("vault", "rekey", "--to", "tpm", "--tcti", tpm.tcti, "--new-passphrase-file", pin).status == 0)
        let guarded = try doctor(home)
        #expect(guarded.status == 0, "\(guarded.out)")
        let provider = provider(guarded.json, "tpm")
        #expect(provider?["guardsVault"] == true && provider?["available"] == true)
        #expect(provider?["noticesRollback"] == true && provider?["place"]?.string == tpm.tcti)
        #expect(guarded.json["vault"]?["level"]?.string == "requireHardware")
        #expect(guarded.json["vault"]?["rollbackProtected"] == true)
        #expect(self.provider(guarded.json, "key-file")?["guardsVault"] == false)

        try tpm.tool("tpm2_dictionarylockout", ["-s", "-n", "1", "-t", "1000", "-l", "1000"])
        let wrong = try home.file("wrong", "314159")
        _ = try home.run("vault", "list", "--passphrase-file", wrong)
        let locked = try doctor(home)
        #expect(locked.status == 78 && locked.out.contains("tpm2_dictionarylockout"), "\(locked.out)")
        tpm.stop()
        let gone = try doctor(home)
        #expect(gone.status == 78 && gone.out.contains("There is no TPM at"), "\(gone.out)")
        #expect(self.provider(gone.json, "tpm")?["available"] == false)
    }

    @Test(
        "Tokens in the modules that p11-kit knows are listed by their labels, and the one that guards the vault is marked"
    )
    func tokens() async throws {
        let module = "/usr/lib/softhsm/libsofthsm2.so"
        let home = try VaultCommandTests.Home()
        let tokens = home.directory.appending(path: "tokens")
        try FileManager.default.createDirectory(at: tokens, withIntermediateDirectories: false)
        _ = try home.file("softhsm.conf", "directories.tokendir = \(tokens.path)\nlog.level = ERROR\n")
        for label in ["mine", "spare"] {
            let made = try home.run(
                URL(filePath: "/usr/bin/softhsm2-util"),
                ["--init-token", "--free", "--label", label, "--so-pin", "12345678", "--pin", "87654321"])
            #expect(made.status == 0, "\(made.err)")
        }
        try await home.fill()
        // Debian's softhsm2 registers its module with p11-kit.
        #expect(provider(try doctor(home).json, "pkcs11", "spare in ")?["available"] == true)
        let pin = try home.file("pin", "87654321")
        let moved = try home.run(
            "vault", "rekey", "--to", "pkcs11", "--module", module, "--token", "mine", "--new-passphrase-file", pin)
        #expect(moved.status == 0, "\(moved.err)")
        let guarded = try doctor(home)
        let mine = provider(guarded.json, "pkcs11", "mine in \(module)")
        #expect(mine?["guardsVault"] == true && mine?["available"] == true && mine?["noticesRollback"] == false)
        #expect(provider(guarded.json, "pkcs11", "spare in ")?["guardsVault"] == false)
        try FileManager.default.moveItem(at: tokens, to: home.directory.appending(path: "pulled"))
        try FileManager.default.createDirectory(at: tokens, withIntermediateDirectories: false)
        let pulled = try doctor(home)
        #expect(pulled.status == 78 && pulled.out.contains("Insert it"), "\(pulled.out)")
    }
}

extension VaultCommandTests.Home {
    /// A client's file of a server that is not there.
    func client() throws -> String {
        try file(
            "client.yaml",
            """
            server: "https://localhost:1/am"
            client:
              id: "bank-app"
              redirectURI: "http://127.0.0.1/callback"
              scopes: ["openid"]
            pins:
              "localhost":
                - "jQJTbIh0grw0/1TkHSumWb+Fs0Ggogr621gT3PvPKG0="
                - "47AEqpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

            """)
    }
}
#endif
