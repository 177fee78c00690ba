import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentStore
import Testing

@testable import AssentEngine

/// A provider that an app brings along: software that calls itself something else.
struct NamedKeys: KeyProvider {
    let kind: String
    let base: any KeyProvider

    var protection: KeyProtection { base.protection }
    var availability: KeyAvailability { get async { await base.availability } }
    func keyNames() async throws -> [String] { try await base.keyNames() }
    func signingKey(named name: String) async throws -> (any SigningKey)? { try await base.signingKey(named: name) }
    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        try await base.makeSigningKey(named: name, algorithm: algorithm)
    }
    func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? {
        try await base.agreementKey(named: name)
    }
    func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey {
        try await base.makeAgreementKey(named: name)
    }
    func removeKey(named name: String) async throws { try await base.removeKey(named: name) }
}

@Suite("Devices with a key provider of another kind")
struct KeystoreTests {
    @Test("A device enrols and signs with a provider of the app's own, where the server's configuration names its kind")
    func own() async throws {
        let world = try await SigningWorld { $0.keystores = ["software", "bank-hsm"] }
        let sdk = try SDKWorld(world, kind: "bank-hsm")
        let device = sdk.device()
        let container = try await sdk.enrolled(device)
        _ = try await sdk.approve(container, on: device)
        let stored = try await world.base.context.database.run(.read("SELECT DISTINCT keystore FROM signing_keys"))
        #expect(try stored.map { try $0.text("keystore") } == ["bank-hsm"])
    }

    @Test("A server refuses keys of a kind that its configuration does not name", arguments: ["bank-hsm", "tpm2"])
    func refused(kind: String) async throws {
        let world = try await SigningWorld { if kind == "tpm2" { $0.keystores = ["software"] } }
        let sdk = try SDKWorld(world, kind: kind)
        let shown = try await world.provider.invites.make(world.ana, user: nil)
        let invite = try SigningInvite(scanned: shown.qr.reveal())
        await #expect(throws: SigningError.self) { try await sdk.device().enrol(invite) }
        #expect(try await world.base.context.database.run(.read("SELECT * FROM signing_keys")).isEmpty)
    }

    @Test(
        "A kind has 1 to 32 of a–z, 0–9 and -, in messages and in the configuration",
        arguments: [
            ("software", true), ("bank-hsm", true), ("software+bank-hsm", true), ("", false), ("software+", false),
            ("Bank", false), ("a b", false), ("software+software+a", false), ("a+b", false),
            (String(repeating: "a", count: 33), false),
        ])
    func names(name: String, isGood: Bool) throws {
        #expect((Keystore(rawValue: name) != nil) == isGood)
        var settings = SigningSettings(
            issuer: SigningIssuer(name: "https://bank.example/signing", realm: "/"), name: "Bank")
        #expect(settings.faults().isEmpty)
        settings.keystores = [name]
        #expect(settings.faults().isEmpty == (isGood && !name.contains("+")))
        settings.keystores = []
        #expect(!settings.faults().isEmpty)
    }
}
