import Assent
import AssentCore
import Foundation
import Testing

@testable import AssentDemo

/// By the façade alone, against the real server.
@Suite("An installation that the server serves no more")
struct ServedNoMoreTests {
    /// The app has a version that is served, and one that is not.
    private static func versions(_ file: String) -> String {
        let line = "        registration: token\n"
        return file.replacing(
            line,
            with: line + "        versions: {\"3.2.0\": {status: enabled}, \"3.0.0\": {status: disabled}, "
                + "default: {status: loginOnly}}\n")
    }

    private static func operating(_ story: Story) async throws -> Assent {
        let assent = try story.makeAssent(vault: "operator")
        try await story.signIn(assent, forcing: false)
        return assent
    }

    /// An installation, or a later version of one with the same vault.
    private static func installation(
        _ story: Story, _ vault: String, version: String? = nil, token: Secret?
    ) throws -> Assent {
        try story.makeAssent(vault: vault) { configuration, keys in
            configuration.resources = [story.gateway: .accessToken(of: [.device])]
            configuration.resourceBase = story.gateway
            configuration.client.id = InstallationScene.app
            configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
            configuration.registration?.deviceScopes = ["app-data"]
            configuration.registration?.softwareVersion = version
        }
    }

    @Test("9 and 19: The call of an installation that the operator has removed is 9002, and the next one 10012")
    func removed() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            let operating = try await Self.operating(story)
            let token = try await InstallationScene(story).initialAccessToken(operating)
            let assent = try Self.installation(story, "removed", token: token)
            try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
            #expect(try await assent.deviceClient.sendRequest(.get("app-info")).status == 200)

            let instance = try #require(try await assent.registration?.current())
            let reply = try await InstallationScene(story).administer(
                operating, "endRegistration", ["clientId": .string(instance.clientID)])
            #expect(reply.status == 200)
            let ended = await #expect(throws: ResourceError.self) {
                try await assent.deviceClient.sendRequest(.get("app-info"))
            }
            #expect(ended?.number == 9002 && ended?.domain == .generic)
            #expect(try await assent.registration?.current() == nil)
            let next = await #expect(throws: ResourceError.self) {
                try await assent.deviceClient.sendRequest(.get("app-info"))
            }
            #expect(next?.number == 10012 && next?.domain == .fetchAnonymousResource)
            for app in [assent, operating] { await app.shutdown() }
        }
    }

    @Test("9 and 19: A version that is disabled gets no token of its own, whether it registers or has: 9004")
    func disabled() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.versions) { story in
            let operating = try await Self.operating(story)
            let token = try await InstallationScene(story).initialAccessToken(operating)
            func refusal(of assent: Assent) async -> String? {
                let error = await #expect(throws: ResourceError.self) {
                    try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
                }
                return error.map { "\($0.domain) \($0.number)" }
            }
            let new = try Self.installation(story, "new", version: "3.0.0", token: token)
            #expect(await refusal(of: new) == "generic 9004")

            // No refused request has used the token. The same installation is served in the other version.
            let served = try Self.installation(story, "known", version: "3.2.0", token: token)
            try await served.deviceClient.authenticateDevice(scopes: ["app-data"])
            #expect(try await served.deviceClient.sendRequest(.get("app-info")).status == 200)
            await served.shutdown()

            let known = try Self.installation(story, "known", version: "3.0.0", token: nil)
            #expect(await refusal(of: known) == "generic 9004")
            #expect(try await known.registration?.current() != nil, "the app may be updated")
            for app in [new, known, operating] { await app.shutdown() }
        }
    }
}
