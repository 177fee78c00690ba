import Assent
import AssentSigning
import Foundation
import Testing

@testable import AssentCLI

@Suite("Users whom a profile's installation remembers")
struct RememberedSignInTests {
    @Test("A file that does not say so, and a device without a container, remember nobody; nothing is made or sent")
    func nobody() async throws {
        let home = try VaultCommandTests.Home()
        for (registration, words) in [
            (nil, "remembersUsers: true"), (ClientFile.Registration(), "remembersUsers: true"),
            (.init(remembersUsers: true), "assent device enroll --here"),
        ] {
            let remembered = RememberedSignIn(
                profile: ClientProfile.ofInstallation(in: home, registration), console: Console(silent: true))
            let error = await #expect(throws: CommandFailure.self) { try await remembered.assent() }
            #expect(error?.description.contains(words) == true, "\(error as Any)")
            #expect(!FileManager.default.fileExists(atPath: home.state.path))
        }
    }

    @Test("The SDK's device has the containers of 'assent device', and sessions belong to the installation's key")
    func shared() async throws {
        let home = try VaultCommandTests.Home()
        let profile = ClientProfile.ofInstallation(in: home, .init(remembersUsers: true))
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
        let alone = try ClientProfile.ofInstallation(in: home, .init()).assent()
        #expect(!alone.configuration.dpop.isOn && alone.configuration.deviceKeys == nil)
        #expect(throws: SigningError(.unsupportedOperation)) { try alone.device.signing }
        await assent.shutdown()
        await alone.shutdown()
    }
}
