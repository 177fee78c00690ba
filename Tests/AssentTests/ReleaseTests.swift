import Assent
import AssentPeers
import AssentTesting
import AssentVault
import Foundation
import TestSupport
import Testing

@Suite("What is left of a façade that an app lets go of") struct ReleaseTests {
    enum Kind: CaseIterable {
        case plain
        case registered
        case bound
        case reporting
        case sealed
    }

    @Test(
        "Without the last reference to it neither its tokens nor its registration stay in memory",
        arguments: Kind.allCases)
    func released(kind: Kind) async throws {
        let (directory, servers) = (try TemporaryDirectory(), Servers())
        let keys = SoftwareKeyProvider(unprotectedFile: directory.url.appending(path: "keys"))
        let sealing = try Assent.PayloadEncryption.Key(SealedListener().publicKey)
        weak var tokens: TokenManager?
        weak var registration: AppRegistration?
        func use() async throws {
            let assent = try servers.assent {
                $0.vault = .file(at: directory.url.appending(path: "vault"), keys: .software(keys))
                if kind != .plain { $0.registration = RegistrationConfiguration(keys: keys) }
                if kind == .bound { $0.dpop = .installation }
                $0.integrity.tellsServer = kind == .reporting
                if kind == .sealed {
                    $0.payloadEncryption = ["https://sealed.bank.example": .init(keys: [sealing], role: .device)]
                }
            }
            if kind != .bound {
                try await assent.tokens.install(Session(token: Secret("SESS")))
                _ = try await assent.send(
                    ResourceRequest(path: "https://api.bank.example/balance", allowsUnsealed: true))
            }
            (tokens, registration) = (assent.tokens, assent.registration)
            #expect((registration == nil) == (kind == .plain))
            await assent.shutdown()
        }
        try await use()
        try await Patience.wait(until: "the tokens are gone") { tokens == nil && registration == nil }
    }

    @Test("A signing device that an app keeps alone keeps the registration, whose key is proved where calls are sealed")
    func keptDevice() async throws {
        let (directory, servers) = (try TemporaryDirectory(), Servers())
        let keys = SoftwareKeyProvider(unprotectedFile: directory.url.appending(path: "keys"))
        weak var tokens: TokenManager?
        weak var registration: AppRegistration?
        func signingDevice() throws -> SigningDevice {
            let assent = try servers.assent {
                $0.registration = RegistrationConfiguration(keys: keys)
                $0.deviceKeys = keys
            }
            (tokens, registration) = (assent.tokens, assent.registration)
            return try assent.device.signing
        }
        var device: SigningDevice? = try signingDevice()
        try await Patience.wait(until: "the tokens are gone") { tokens == nil }
        withExtendedLifetime(device) { #expect(registration != nil) }
        device = nil
        try await Patience.wait(until: "the registration is gone") { registration == nil }
    }
}
