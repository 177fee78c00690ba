import ArgumentParser
import Assent
import AssentCore
import AssentPeers
import AssentVault
import Foundation
import Testing
import TestSupport

@testable import AssentCLI

@Suite("assent vault")
struct VaultCommandTests {
    /// A home directory of its own, and the program.
    final class Home: Sendable {
        private let place: TemporaryDirectory
        let program: URL

        init() throws {
            place = try TemporaryDirectory()
            program = BuiltProgram.beside("assent")
        }

        var directory: URL { place.url }
        var vault: URL { directory.appending(path: "state/assent/default/vault") }
        var keyFile: URL { directory.appending(path: "state/assent/default/vault.key") }

        func file(_ name: String, _ content: String) throws -> String {
            let url = directory.appending(path: name)
            try Data(content.utf8).write(to: url)
            return url.path
        }

        /// A vault as the client commands make it.
        func fill() async throws {
            let vault = try await FileVault.open(
                vault, store: "default", keys: .software(SoftwareKeyProvider(unprotectedFile: keyFile)))
            try await vault.update("tokens", to: Secret("a-very-secret-token"), expected: .absent)
            try await vault.update("session\u{1B}[2J", to: Secret("another-secret"), expected: .absent)
        }

        func run(_ arguments: String...) throws -> (status: Int32, out: String, err: String) { try run(arguments) }

        func run(_ arguments: [String]) throws -> (status: Int32, out: String, err: String) {
            try run(program, arguments)
        }

        func run(_ program: URL, _ arguments: [String]) throws -> (status: Int32, out: String, err: String) {
            let done = try FinishedProcess.run(
                program.path, arguments,
                environment: [
                    "XDG_STATE_HOME": directory.appending(path: "state").path,
                    "XDG_CONFIG_HOME": directory.appending(path: "config").path, "HOME": directory.path,
                    "PATH": "/usr/bin:/bin", "SOFTHSM2_CONF": directory.appending(path: "softhsm.conf").path,
                ])
            let (output, errors) = (done.text, done.complaints)
            #expect(!output.contains("secret-token") && !errors.contains("secret-token"))
            #expect(!output.contains("\u{1B}") && !errors.contains("\u{1B}"))
            return (done.status, output, errors)
        }

        /// What the program says to arguments that it refuses before it does anything, without starting it, as its
        /// `main` says it. What it would not refuse so early is given to the program.
        func refusal(_ arguments: [String]) throws -> (status: Int32, out: String, err: String) {
            if let words = Misspelling.words(about: arguments, in: AssentCommand.self) {
                return (EX_USAGE, "", words + "\n")
            }
            do {
                _ = try AssentCommand.parseAsRoot(arguments)
            } catch {
                let code = AssentCommand.exitCode(for: error)
                let text = AssentCommand.fullMessage(for: error, columns: 80) + "\n"
                guard !code.isSuccess else { return (code.rawValue, text, "") }
                return (code.rawValue, "", text)
            }
            return try run(arguments)
        }
    }

    @Test("list shows names, versions and sizes, and nothing else")
    func list() async throws {
        let home = try Home()
        try await home.fill()
        let text = try home.run("vault", "list")
        #expect(text.status == 0)
        #expect(text.out.contains("tokens  version 1  19 bytes"))
        let json = try JSONValue.parse(Array(home.run("vault", "list", "--json").out.utf8))
        #expect(json["vault"]?["protection"]?.string == "unprotected")
        #expect(json["secrets"]?.array?.count == 2)
        #expect(json["secrets"]?.array?.first?["value"] == nil)
    }

    @Test("Where there is no vault, each command says so and makes none")
    func absent() throws {
        let home = try Home()
        for arguments in ["list", "check", "rekey"] {
            let result = try home.run("vault", arguments, "--json")
            #expect(result.status == 1)
            #expect(try JSONValue.parse(Array(result.out.utf8))["error"]?.string == "absent")
        }
        #expect(!FileManager.default.fileExists(atPath: home.vault.path))
    }

    @Test("check finds damage, says what to do, and removes only what it is asked to")
    func check() async throws {
        let home = try Home()
        try await home.fill()
        #expect(try home.run("vault", "check").status == 0)
        let record = try #require(
            FileManager.default.contentsOfDirectory(atPath: home.vault.path).first { $0.hasPrefix("r-") })
        try Data([1, 2, 3]).write(to: home.vault.appending(path: record))
        try Data([9]).write(to: home.vault.appending(path: "t-00"))
        let found = try home.run("vault", "check")
        #expect(found.status == 1)
        #expect(found.out.contains("truncated") && found.out.contains("--remove-damaged"))
        #expect(!FileManager.default.fileExists(atPath: home.vault.appending(path: "t-00").path))
        let json = try home.run("vault", "check", "--json")
        #expect(json.status == 1)
        #expect(try JSONValue.parse(Array(json.out.utf8))["findings"]?.array?.first?["code"]?.string == "truncated")
        #expect(try home.run("vault", "check", "--remove-damaged").status == 0)
        #expect(try home.run("vault", "check").status == 0)
        #expect(try JSONValue.parse(Array(home.run("vault", "list", "--json").out.utf8))["secrets"]?.array?.count == 1)
    }

    @Test("rekey moves a profile's vault under a passphrase and back, and the other commands follow")
    func rekey() async throws {
        let home = try Home()
        try await home.fill()
        let (first, second) = (try home.file("first", "correct horse\n"), try home.file("second", "battery staple\n"))
        let before = try home.run("vault", "check")
        #expect(before.out.contains("unprotected"))
        #expect(try home.run("vault", "rekey").status == 0)
        let moved = try home.run("vault", "rekey", "--to", "passphrase", "--new-passphrase-file", first)
        #expect(moved.status == 0, "\(moved.err)")
        #expect(moved.out.contains("software") && !moved.out.contains("unprotected"))
        #expect(try home.run("vault", "list", "--passphrase-file", first).out.contains("tokens  version 1"))
        #expect(try home.run("vault", "list", "--passphrase-file", second).err.contains("wrongKey"))
        // Nobody to ask is an error, not a way in.
        #expect(try home.run("vault", "list").status == 1)
        #expect(
            try home.run(
                "vault", "rekey", "--passphrase-file", first, "--new-passphrase-file", second
            ).status == 0)
        #expect(try home.run("vault", "list", "--passphrase-file", first).status == 1)
        #expect(try home.run("vault", "check", "--passphrase-file", second).status == 0)
        let back = try home.run(
            "vault", "rekey", "--passphrase-file", second, "--to", "key-file", "--new-key-file", home.keyFile.path)
        #expect(back.status == 0, "\(back.err)")
        #expect(try home.run("vault", "list").out.contains("tokens  version 1"))
    }

    @Test(
        "A passphrase comes from a descriptor, or is asked for: twice when it is new, and nothing changes when the two differ"
    )
    func asked() async throws {
        let home = try Home()
        try await home.fill()
        func run(_ input: String, _ command: String) throws -> (status: Int32, out: String, err: String) {
            try home.run(
                URL(filePath: "/bin/sh"),
                [
                    "-c", "exec \"$0\" vault \(command) <\"$1\" 3<\"$1\"", home.program.path,
                    try home.file("input", input),
                ])
        }
        let before = try Data(contentsOf: home.vault.appending(path: "vault"))
        let differing = try run("correct horse\nbattery staple\n", "rekey --to passphrase")
        #expect(differing.status == 1 && differing.err.contains("differ"), "\(differing.err)")
        #expect(try Data(contentsOf: home.vault.appending(path: "vault")) == before)
        #expect(try run("correct horse\ncorrect horse\n", "rekey --to passphrase").status == 0)
        #expect(try run("correct horse\n", "list").out.contains("tokens  version 1"))
        #expect(try run("battery\ncorrect horse\n", "list").out.contains("tokens  version 1"))
        #expect(try run("battery\n", "list").status == 1)
        #expect(try run("correct horse\n", "list --passphrase-fd 3").out.contains("tokens  version 1"))
        #expect(try run("battery\n", "list --passphrase-fd 3").err.contains("wrongKey"))
    }

    @Test("A vault that was exchanged cannot choose what guards it")
    func exchanged() async throws {
        let home = try Home()
        try await home.fill()
        let passphrase = try home.file("passphrase", "correct horse")
        #expect(try home.run("vault", "rekey", "--to", "passphrase", "--new-passphrase-file", passphrase).status == 0)
        // Somebody puts a vault of their own there, with an unprotected key beside it.
        try FileManager.default.removeItem(at: home.vault)
        try FileManager.default.removeItem(at: home.keyFile)
        try await home.fill()
        let result = try home.run("vault", "list", "--passphrase-file", passphrase)
        #expect(result.status == 1)
        #expect(result.err.contains("protectionMismatch"))
    }

    @Test(
        "Wrong usage has an exit status of its own",
        arguments: [
            ["vault", "list", "--key-file", "x"], ["vault", "list", "--store", "x"],
            ["vault", "list", "--profile", "../x"],
            ["vault", "rekey", "--to", "key-file"], ["vault", "rekey", "--to", "nothing"],
            ["vault", "rekey", "--to", "pkcs11"], ["vault", "rekey", "--to", "pkcs11", "--module", "/x"],
            ["vault", "rekey", "--tcti", "x"], ["vault", "rekey", "--without-pin"],
            ["vault", "rekey", "--tpm-parent", "x"],
            ["vault", "rekey", "--to", "tpm", "--tpm-parent", "81000001"],
            ["vault", "rekey", "--to", "tpm", "--tpm-parent", "0x80000001"],
            ["vault", "rekey", "--to", "tpm", "--tpm-parent", "0x181000001"],
            ["vault", "rekey", "--to", "tpm", "--without-pin", "--new-passphrase-file", "x"],
            ["vault", "rekey", "--to", "tpm", "--module", "/x", "--token", "x"],
            ["vault", "list", "--keys", "x"],
            ["vault", "list", "--directory", "x", "--keys", "x", "--key-file", "x"],
            ["vault", "rekey", "--token", "x"], ["vault", "rekey", "--new-key-file", "x"],
            ["vault", "list", "--passphrase-file", "/dev/null", "--passphrase-fd", "0"],
            ["vault", "list", "--passphrase", "x"],
        ])
    func usage(arguments: [String]) throws {
        let result = try Home().refusal(arguments)
        #expect(result.status == 64, "\(result.err)")
    }
}

extension VaultCommandTests {
    @Test("rekey moves a vault into a PKCS#11 token, where only the PIN opens it, and out again")
    func token() async throws {
        let module = "/usr/lib/softhsm/libsofthsm2.so"
        let home = try Home()
        let tokens = home.directory.appending(path: "tokens")
        try FileManager.default.createDirectory(at: tokens, withIntermediateDirectories: false)
        _ = try home.file("softhsm.conf", "directories.tokendir = \(tokens.path)\nlog.level = ERROR\n")
        let made = try home.run(
            URL(filePath: "/usr/bin/softhsm2-util"),
            ["--init-token", "--free", "--label", "mine", "--so-pin", "12345678", "--pin", "87654321"])
        #expect(made.status == 0, "\(made.err)")
        try await home.fill()
        let (pin, wrong) = (try home.file("pin", "87654321\n"), try home.file("wrong", "11111111\n"))
        let moved = try home.run(
            "vault", "rekey", "--to", "pkcs11", "--module", module, "--token", "mine", "--new-passphrase-file", pin)
        #expect(moved.status == 0, "\(moved.err)")
        #expect(moved.out.contains("hardware (pkcs11)") && moved.out.contains("protection level requireHardware"))
        #expect(moved.out.contains("an old copy of the whole vault is not noticed"))
        #expect(try home.run("vault", "check", "--passphrase-file", pin).status == 0)
        #expect(try home.run("vault", "list", "--passphrase-file", pin).out.contains("tokens  version 1"))
        #expect(try home.run("vault", "list", "--passphrase-file", wrong).err.contains("wrongKey"))
        // The token is pulled out.
        try FileManager.default.moveItem(at: tokens, to: home.directory.appending(path: "pulled"))
        try FileManager.default.createDirectory(at: tokens, withIntermediateDirectories: false)
        #expect(try home.run("vault", "list", "--passphrase-file", pin).err.contains("keyUnavailable"))
        try FileManager.default.removeItem(at: tokens)
        try FileManager.default.moveItem(at: home.directory.appending(path: "pulled"), to: tokens)
        let back = try home.run(
            "vault", "rekey", "--passphrase-file", pin, "--to", "key-file", "--new-key-file", home.keyFile.path)
        #expect(back.status == 0, "\(back.err)")
        #expect(try home.run("vault", "list").out.contains("tokens  version 1"))
    }

    @Test("A token that is not there is an error, and the vault stays under the key that it has")
    func missingToken() async throws {
        let home = try Home()
        try await home.fill()
        let before = try Data(contentsOf: home.vault.appending(path: "vault"))
        let result = try home.run(
            "vault", "rekey", "--to", "pkcs11", "--module", "/nonexistent/module.so", "--token", "mine")
        #expect(result.status == 1)
        #expect(result.err.contains("keyUnavailable"))
        #expect(try Data(contentsOf: home.vault.appending(path: "vault")) == before)
        #expect(try home.run("vault", "list").status == 0)
    }

    @Test("doctor says what guards the vault, and that an old copy of it would not be noticed")
    func doctor() async throws {
        let home = try Home()
        let client = try home.file(
            "client.yaml",
            """
            server: "https://localhost:8443/am"
            client:
              id: "bank-app"
              redirectURI: "http://127.0.0.1/callback"
              scopes: ["openid"]

            """)
        #expect(try home.run("doctor", "-c", client).out.contains("no vault yet"))
        try await home.fill()
        let plain = try home.run("doctor", "-c", client).out
        #expect(plain.contains("unprotected"))
        #expect(plain.contains("an old copy of the whole vault is not noticed"))
        #expect(plain.contains("protection level software") && plain.contains("guarded by an unprotected key file"))
        let passphrase = try home.file("passphrase", "correct horse")
        #expect(try home.run("vault", "rekey", "--to", "passphrase", "--new-passphrase-file", passphrase).status == 0)
        let sealed = try home.run("doctor", "-c", client).out
        #expect(!sealed.contains("guarded by an unprotected") && sealed.contains("$scrypt$ln=15,r=8,p=1"))
        try Data([1]).write(to: home.vault.appending(path: "vault"))
        let damaged = try home.run("doctor", "-c", client)
        #expect(damaged.status == 78 && damaged.out.contains("vault of profile") && !damaged.out.contains("tampered"))
    }

    @Test("An app's vault is checked by its directory")
    func appVault() async throws {
        let home = try Home()
        try await home.fill()
        let directory = home.directory.appending(path: "app")
        let key = home.directory.appending(path: "app.key")
        _ = try await FileVault.open(
            directory, store: "wallet", keys: .software(SoftwareKeyProvider(unprotectedFile: key)))
        let options = ["--directory", directory.path, "--key-file", key.path]
        #expect(try home.run(["vault", "check", "--store", "wallet"] + options).status == 0)
        #expect(try home.run(["vault", "check"] + options).err.contains("anotherStore"))
    }
}
