import Assent
import AssentCore
import AssentServer
import AssentSigningProtocol
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// An app that enrols itself with the session of its user, by the façade alone.
@Suite("The façade's device, enrolled by the app's own session")
struct OwnDeviceTests {
    private static let pin = Secret("0042")

    /// Logins are signed by a key behind a PIN, which the server helps to check.
    static func withLogin(_ file: String) -> String {
        file.replacing(
            "      name: Bank of Example\n",
            with: """
                      name: Bank of Example
                      policies:
                        pin: {mode: assisted, kdf: "$scrypt$ln=14,r=8,p=1", password: {minLength: 4}}
                      keys:
                        - {usage: auth, label: login, policy: pin}
                        - {usage: sign, label: payments, policy: device}

                """)
    }

    private func app(_ story: Story, _ vault: String) throws -> Assent {
        try story.makeAssent(vault: vault) { configuration, keys in
            let place = URL(fileURLWithPath: "\(story.world.directory)/\(vault).device")
            configuration.deviceKeys = SoftwareKeyProvider(unprotectedFile: place)
            configuration.device.modes = [.device, .assisted]
            configuration.dpop = .on(keys: keys)
        }
    }

    @Test("A user chooses a PIN and types no code and no digits; without a fresh session nothing is made")
    func story() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.withLogin) { story in
            let app = try app(story, "own")
            let nobody = await #expect(throws: TokenError.self) { try await app.device.enrol { _ in Self.pin } }
            #expect(nobody?.code == .signInNeeded)

            try await story.signIn(app, forcing: false)
            story.clock.advance(by: 301)
            await #expect(throws: SigningError(.freshAuthenticationRequired)) {
                try await app.device.enrol { _ in Self.pin }
            }
            #expect(try await app.device.containers().isEmpty)

            try await story.signIn(app, forcing: true)
            await #expect(throws: SigningError(.invalidPassword)) { try await app.device.enrol { _ in Secret("1") } }
            // It goes on with what is left.
            let container = try await app.device.enrol(name: "Ana's laptop") { request in
                #expect(request.isNew && request.rules.minLength == 4)
                return Self.pin
            }
            #expect(container.state == .active && container.digits == nil)
            #expect(container.keys(usage: .auth).map(\.label) == ["login"])
            let slot = try #require(container.keys(usage: .auth).first?.password)
            try await container.password(slot)?.verify(Self.pin)
            #expect(try await app.device.containers().map(\.id) == [container.id])
            await app.shutdown()
        }
    }
}
