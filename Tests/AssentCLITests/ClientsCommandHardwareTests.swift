#if TPM && PKCS11 && os(Linux)
import AssentCore
import AssentJOSE
import AssentPeers
import Foundation
import Testing

@testable import AssentCLI

@Suite("assent clients key in a token and in a TPM")
struct ClientsCommandHardwareTests {
    private typealias Home = VaultCommandTests.Home

    /// Makes a key of a new profile, and looks at what that leaves.
    private func check(_ home: Home, _ keys: [String], pin: String) throws {
        let file = try home.file("pin", pin + "\n")
        let made = try home.run(["clients", "key", "bank-app"] + keys + ["--passphrase-file", file])
        #expect(made.status == 0 && !made.err.contains("key file"), "\(made.err)")
        let set = try JWKSet(try JSONValue.parse(Array(made.out.utf8)))
        #expect(set.keys.count == 1 && set.keys.first?.verifies(.es256) == true)
        // The choice is kept, so later commands need not be told, and the PIN is not.
        let shown = try home.run("clients", "key", "bank-app", "--show", "--passphrase-file", file)
        #expect(shown.status == 0 && shown.out == made.out, "\(shown.err)")
        let choice = home.directory.appending(path: "config/assent/default.vault.yaml")
        #expect(try !String(contentsOf: choice, encoding: .utf8).contains(pin))
        let again = try home.run("clients", "key", "bank-app", "--passphrase-file", file)
        #expect(again.status == 1 && again.out.isEmpty && again.err.contains("--replace"), "\(again.err)")
        let unasked = try home.run("clients", "key", "other")
        #expect(unasked.status == 1 && unasked.out.isEmpty && unasked.err.contains("--passphrase-file"))
        let other = try home.run("clients", "key", "bank-app", "--replace", "--passphrase-file", file)
        #expect(other.status == 0 && other.out != made.out, "\(other.err)")
        #expect(!FileManager.default.fileExists(atPath: home.keyFile.path))
    }

    @Test("A PKCS#11 token holds the key under its PIN")
    func token() throws {
        let home = try Home()
        let module = "/usr/lib/softhsm/libsofthsm2.so"
        let tokens = home.directory.appending(path: "tokens")
        try FileManager.default.createDirectory(at: tokens, withIntermediateDirectories: false)
        _ = try home.file("softhsm.conf", "directories.tokendir = \(tokens.path)\nlog.level = ERROR\n")
        let made = try home.run(
            URL(filePath: "/usr/bin/softhsm2-util"),
            ["--init-token", "--free", "--label", "mine", "--so-pin", "12345678", "--pin", "87654321"])
        #expect(made.status == 0, "\(made.err)")
        try check(home, ["--keys", "pkcs11", "--module", module, "--token", "mine"], pin: "87654321")
    }

    @Test("A TPM holds the key under a PIN")
    func tpm() throws {
        let home = try Home()
        let tpm = try SwTPM(in: home.directory.appending(path: "chip"))
        try check(home, ["--keys", "tpm", "--tcti", tpm.tcti], pin: "271828")
    }
}
#endif
