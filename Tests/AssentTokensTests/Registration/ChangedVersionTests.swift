import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

@Suite("An app that is updated after its registration") struct ChangedVersionTests {
    private let clock = ManualClock()
    private let ring = KeyRing()
    private let provider: FakeProvider
    private let door: RegistrationDoor

    init() throws {
        (provider, door) = try FakeProvider.registering(clock: clock)
    }

    private func installation(_ version: String?) throws -> TokenManager {
        try provider.manager {
            $0.registration = RegistrationConfiguration(keys: ring)
            $0.registration?.softwareVersion = version
            $0.registration?.deviceName = "Ana's laptop"
        }
    }

    private func registration(_ version: String?) throws -> AppRegistration {
        try #require(try installation(version).registration)
    }

    private var told: [JSONValue?] { provider.managed(.put).map { $0.json["software_version"] } }

    @Test("Version, platform and name of the device are sent at registration; a name only where the app says one")
    func sent() async throws {
        _ = try await registration("3.1.0").register()
        let sent = try #require(provider.registrations.first).json
        #expect(sent["software_version"] == "3.1.0" && sent["assent_device_name"] == "Ana's laptop")
        #expect(sent["assent_platform"]?.string?.isEmpty == false)
        _ = try await registration("3.1.0").register()
        #expect(told.isEmpty)
    }

    @Test("Another version is told once, before the next sign-in, and so is that there is none")
    func signIn() async throws {
        let first = try await registration("3.1.0").register()
        for version in ["3.2.0", "3.2.0", nil, nil, "3.2.0"] as [String?] {
            #expect(try await registration(version).register().clientID == first.clientID)
        }
        #expect(told == ["3.2.0", nil, "3.2.0"] as [JSONValue?])
    }

    @Test("Another version is told before tokens are renewed, once; if the server does not take it, they are renewed")
    func renewal() async throws {
        let before = try installation("3.1.0")
        try await before.install(Session(token: Secret("SESS")))
        _ = try await before.tokens()
        for (number, version) in ["3.2.0", "3.2.0", "3.3.0"].enumerated() {
            if version == "3.3.0" { door.change { $0.management = .json(400, ["error": "invalid_client_metadata"]) } }
            clock.advance(by: 601)
            _ = try await installation(version).tokens()
            #expect(provider.tokenRequests("refresh_token").count == number + 1)
        }
        #expect(told == ["3.2.0", "3.3.0"] && door.registered == 1)
        let sent = provider.exchanges.withLock { $0 }
        let change = try #require(sent.firstIndex(where: { $0.request.method == .put }))
        let renewal = try #require(
            sent.firstIndex(where: { $0.form["grant_type"] == "refresh_token" }))
        #expect(change < renewal)
    }

    @Test("Where the server does not take the version, a sign-in ends, and the registration is as it was")
    func refused() async throws {
        let first = try await registration("3.1.0").register()
        door.change { $0.management = .json(400, ["error": "invalid_client_metadata"]) }
        let installation = try installation("3.2.0")
        await #expect(throws: TokenError(.registrationRefused, "")) {
            try await installation.registration?.register()
        }
        #expect(try await installation.registration?.current() == first)
    }

    @Test(
        "A server that serves a version no more, or does not know it, is told apart",
        arguments: ["version_outdated", "version_unknown", "something else"])
    func reasons(reason: String) async throws {
        let refusal = HTTPReply.json(400, ["error": "invalid_client_metadata", "assent_error": .string(reason)])
        door.change { $0.refusal = refusal }
        let error = await #expect(throws: TokenError.self) { try await registration("3.1.0").register() }
        #expect(error?.code == .registrationRefused && error?.assentError == reason)
        #expect((error?.suggestion == "Update the app.") == (reason == "version_outdated"))
    }
}
