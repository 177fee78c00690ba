import Assent
import AssentSigning
import Foundation
import Testing

@testable import AssentCLI

@Suite("Users whom a profile's installation remembers")
struct RememberedSignInTests {
    /// A profile in a home of its own.
    private static func profile(
        _ home: VaultCommandTests.Home, _ registration: ClientFile.Registration?
    ) -> ClientProfile {
        var file = ClientFile(
            server: "https://a.example/am", realm: "/alpha", cookieName: "session", clientID: "app",
            redirectURI: "http://127.0.0.1/callback", scopes: ["accounts"], journey: "Login", resources: [],
            authority: nil, pins: [])
        file.registration = registration
        let places = Places(environment: [
            "HOME": home.directory.path, "XDG_CONFIG_HOME": home.directory.appending(path: "c").path,
            "XDG_STATE_HOME": home.directory.appending(path: "s").path,
        ])
        return ClientProfile(file: file, places: places, name: "default")
    }

    @Test("A file that does not say so, and a device without a container, remember nobody; nothing is made or sent")
    func nobody() async throws {
        let home = try VaultCommandTests.Home()
        for (registration, words) in [
            (nil, "remembersUsers: true"), (ClientFile.Registration(), "remembersUsers: true"),
            (.init(remembersUsers: true), "assent device enroll --here"),
        ] {
            let remembered = RememberedSignIn(
                profile: Self.profile(home, registration), console: Console(silent: true))
            let error = await #expect(throws: CommandFailure.self) { try await remembered.assent() }
            #expect(error?.description.contains(words) == true, "\(error as Any)")
            #expect(!FileManager.default.fileExists(atPath: home.directory.appending(path: "s").path))
        }
    }

    @Test("The SDK's device has the containers of 'assent device', and sessions belong to the installation's key")
    func shared() async throws {
        let home = try VaultCommandTests.Home()
        let profile = Self.profile(home, .init(remembersUsers: true))
        let store = try await DeviceStore.open(profile, besideVault: true)
        let place = DevicePlace(profile: profile.name, places: profile.places)
        #expect(place.isMade && !store.asksForSecret)
        let assent = try profile.assent(device: store)
        #expect(assent.configuration.dpop.isOn && assent.configuration.deviceKeys != nil)
        guard case .store(let vault) = assent.configuration.deviceVault else {
            Issue.record("the device has no vault of its own")
            return
        }
        #expect((vault as? FileVault) === store.vault)
        #expect(try await assent.device.containers().isEmpty)
        let alone = try Self.profile(home, .init()).assent()
        #expect(!alone.configuration.dpop.isOn && alone.configuration.deviceKeys == nil)
        #expect(throws: SigningError(.unsupportedOperation)) { try alone.device.signing }
        await assent.shutdown()
        await alone.shutdown()
    }
}
