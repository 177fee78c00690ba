#if PKCS11 && TPM && os(Linux)
import AssentCore
import AssentPeers
import Foundation
import TestSupport
import Testing

@testable import AssentCLI

@Suite("A device on the command line whose keys are in hardware")
struct HardwareDeviceTests {
    private static let pin = "87654321"

    private static func file(_ desk: DeviceDesk, _ name: String, _ text: String) throws -> String {
        let path = desk.device.home + "/" + name
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// What holds the keys that approve, as the evidence says.
    private static func keystores(_ bundle: String) throws -> [JSONValue] {
        let enrol = try #require(JSONValue.parse(bundle)["enrolments"]?.array?.first?["enrol"]?.string)
        let payload = try #require(enrol.split(separator: ".").dropFirst().first.flatMap { Base64URL.decode($0) })
        let keys = try #require(JSONValue.parse(payload)["keys"]?.array)
        return keys.filter { $0["label"] == "payments" }.compactMap { $0["keystore"] }
    }

    /// Enrols, pays, and has the evidence judged; then nothing of the device's keys is in a file of ours.
    private static func story(
        _ desk: DeviceDesk, _ keys: [String], provider: String, keystore: String, hasPIN: Bool
    ) async throws {
        let pin = DevicePINCommandTests.pin
        try await desk.enrol(["--keys", provider] + keys, typing: hasPIN ? [pin, pin] : [])
        let chosen = try String(
            contentsOfFile: desk.device.home + "/config/assent/default.device.yaml", encoding: .utf8)
        #expect(chosen.contains("provider: \(provider)") && !chosen.contains(Self.pin) && !chosen.contains(pin))
        #expect(!FileManager.default.fileExists(atPath: desk.device.home + "/state/assent/default/signing.key"))
        // A wrong PIN opens nothing in the hardware, either.
        let paid = try await desk.payAndSign(typing: hasPIN ? [DevicePINCommandTests.other, pin] : [])
        #expect(paid.signed.errors.contains("Tries left: 2.") == hasPIN, "\(paid.signed.errors)")
        let evidence = try await desk.evidence(of: paid.transaction)
        #expect(try keystores(evidence) == [.string(hasPIN ? "software+\(keystore)" : keystore)])
        let (bundle, key) = try desk.write(evidence)
        let judged = try await desk.user.run("verify", bundle, "--trust", key)
        #expect(judged.status == 0 && judged.output.contains("200.00 EUR"), "\(judged.output)\(judged.errors)")

        var wrong = desk
        wrong.options = ["--passphrase-file", try file(desk, "wrong", "11111111\n")]
        let refused = try await wrong.onDevice("device", "list")
        #expect(refused.status == 1 && refused.errors.contains("PIN is wrong"), "\(refused.errors)")
        #expect(try await desk.onDevice("device", "list").output.contains("ACTIVE"))
    }

    @Test(
        "In a PKCS#11 token, without and behind a PIN: it enrols, signs and verifies, and nothing without the token",
        arguments: [false, true])
    func token(hasPIN: Bool) async throws {
        try await DeviceTests.run(with: hasPIN ? DevicePINCommandTests.policy : "") { world, user, device in
            var desk = DeviceDesk(world: world, user: user, device: device)
            let tokens = device.home + "/tokens"
            try FileManager.default.createDirectory(atPath: tokens, withIntermediateDirectories: false)
            desk.environment["SOFTHSM2_CONF"] = try Self.file(
                desk, "softhsm.conf", "directories.tokendir = \(tokens)\nlog.level = ERROR\n")
            let environment = desk.environment
            let made = try await offPool {
                try FinishedProcess.run(
                    "/usr/bin/softhsm2-util",
                    ["--init-token", "--free", "--label", "mine", "--so-pin", "12345678", "--pin", Self.pin],
                    environment: environment)
            }
            try #require(made.status == 0, "\(made.complaints)")
            desk.options = ["--passphrase-file", try Self.file(desk, "pin", Self.pin + "\n")]
            try await Self.story(
                desk, ["--module", "/usr/lib/softhsm/libsofthsm2.so", "--token", "mine"], provider: "pkcs11",
                keystore: "pkcs11", hasPIN: hasPIN)
            try FileManager.default.moveItem(atPath: tokens, toPath: device.home + "/pulled")
            try FileManager.default.createDirectory(atPath: tokens, withIntermediateDirectories: false)
            let pulled = try await desk.onDevice("device", "list")
            #expect(pulled.status == 1 && pulled.errors.contains("No token with this label"), "\(pulled.errors)")
        }
    }

    @Test(
        "In a TPM, without and behind a PIN: it enrols, signs and verifies, and nothing without the TPM",
        arguments: [false, true])
    func tpm(hasPIN: Bool) async throws {
        // Its sockets' paths must be short.
        let directory = URL(
            fileURLWithPath: NSTemporaryDirectory() + "/assent-tpm-" + SystemRandom().token(byteCount: 6))
        defer { try? FileManager.default.removeItem(at: directory) }
        try await DeviceTests.run(with: hasPIN ? DevicePINCommandTests.policy : "") { world, user, device in
            var desk = DeviceDesk(world: world, user: user, device: device)
            let tpm = try await offPool { try SwTPM(in: directory) }
            desk.options = ["--passphrase-file", try Self.file(desk, "pin", Self.pin + "\n")]
            try await Self.story(desk, ["--tcti", tpm.tcti], provider: "tpm", keystore: "tpm2", hasPIN: hasPIN)
            tpm.stop()
            let gone = try await desk.onDevice("device", "list")
            #expect(gone.status == 1 && gone.errors.contains("There is no TPM at"), "\(gone.errors)")
        }
    }
}
#endif
