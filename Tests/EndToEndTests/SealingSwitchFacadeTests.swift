import Assent
import AssentCore
import AssentEngine
import AssentPayload
import AssentServer
import Foundation
import HTTPTypes
import Testing

@testable import AssentDemo

/// An app that is made by the same lines each time, with a trust file that leaves it to the server, at servers whose
/// files differ in one word.
@Suite("The server's switch for payload encryption, and an app that does not change")
struct SealingSwitchFacadeTests {
    private static let environment = "test"

    /// Has the server say by this key what its app may do, and what holds for the app's only version.
    private static func telling(
        by key: SoftwareSigningKey, _ sealing: AppVersions.Sealing
    ) -> @Sendable (inout ServerConfiguration) throws -> Void {
        { configuration in
            for realm in configuration.realms.indices {
                let apps = configuration.realms[realm].apps
                guard let app = apps.firstIndex(where: { $0.client.id == InstallationScene.app }) else { continue }
                configuration.realms[realm].apps[app].versions = AppVersions(othersSealing: sealing)
                configuration.realms[realm].deviceConfiguration = DeviceConfigurationSettings(
                    key: key, environment: Self.environment)
            }
        }
    }

    /// What the app is shipped with: the server's keys, and that the server decides.
    private func trustFile(
        _ story: Story, _ payloadKeys: [PayloadKey], by key: SoftwareSigningKey
    ) async throws -> TrustFile {
        let (now, server) = (story.clock.epochSeconds, story.world.endpoints.server)
        let origins = try [server, story.gateway].map { try Origin($0) }
        // The connections are the story's, which compare the right ones.
        let pins = (1...2).map { number -> JSONValue in
            let digest = Base64URL.encode([UInt8](repeating: UInt8(number), count: 32))
            return ["spki": .string(digest), "notAfter": .integer(now + 86_400)]
        }
        let hosts = origins.map { origin -> JSONValue in
            let sends: JSONValue = origin == origins.last ? ["user", "device"] : []
            return ["host": .string(origin.authority), "pins": .array(pins), "sends": sends]
        }
        let keys = payloadKeys.map { key -> JSONValue in
            let x = Base64URL.encode(key.bytes)
            return ["kid": .string(key.kid), "x": .string(x), "notAfter": .integer(now + 86_400)]
        }
        let signers = try (0..<2).map { _ in try SoftwareSigningKey.generate(.es256) }
        let jwks = try signers.map { try JWK(publicKeyInfo: $0.publicKeyInfo) }
        let members: JSONObject = [
            "v": 1, "aud": .string("\(InstallationScene.app)/\(HostPlatform.name)/\(Self.environment)"), "version": 1,
            "iat": .integer(now), "keys": .array(jwks.map(\.json)), "hosts": .array(hosts),
            "issuer": .string("\(server)/oauth2/realms/root/realms/alpha"),
            "identity": .string(Base64URL.encode([UInt8](repeating: 9, count: 32))),
            "payload": [
                "suite": "pe1", "mode": "server", "keys": .array(keys),
                "origins": .array(origins.map { .string($0.description) }),
            ],
            "config": [try JWK(publicKeyInfo: key.publicKeyInfo).json],
            "controls": ["debugger": "off", "rooted": "off", "preload": "off"], "source": [],
        ]
        let header: JSONObject = ["typ": "assent-trust+jwt", "kid": .string(jwks[0].thumbprint)]
        return try TrustFile(
            shipped: try await JWS.sign(JSONValue.object(members).serializedBytes(), header: header, with: signers[0]))
    }

    private func app(_ story: Story, _ file: TrustFile, registering token: Secret) throws -> Assent {
        try story.makeAssent(vault: "switched") { configuration, provider in
            configuration.client.id = InstallationScene.app
            configuration.trust = file
            configuration.pins = [:]
            configuration.resources = [:]
            configuration.resourceBase = story.gateway
            configuration.registration = RegistrationConfiguration(keys: provider, initialAccessToken: token)
            configuration.registration?.deviceScopes = ["app-data"]
            configuration.dpop = .installation
        }
    }

    /// By these the app finds out whether it seals: they are never sealed, and carry nothing.
    private func isQuestion(_ request: HTTPRequest) -> Bool {
        let path = request.path ?? ""
        return request.method == .get
            && (path.hasSuffix("/.well-known/openid-configuration") || path.contains("/device_config?"))
    }

    @Test(
        "3: Registration, sign-in and calls of one app go sealed or plainly, as the server's file says of its version",
        arguments: AppVersions.Sealing.allCases)
    func switched(sealing: AppVersions.Sealing) async throws {
        let (wire, key) = (SealedWire(), try SoftwareSigningKey.generate(.es256))
        try await World.run(
            logger: CollectingLog().logger, watching: wire.watching, configuring: Self.telling(by: key, sealing)
        ) { story in
            let payloadKeys = try await World.payloadKeys(of: story.world)
            let keyring = try await PayloadKeyring(story)
            let token = try await keyring.initialAccessToken()
            wire.clear()

            let assent = try app(story, try await trustFile(story, payloadKeys, by: key), registering: token)
            try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
            #expect(try await assent.deviceClient.sendRequest(.get("app-info")).status == 200)
            try await story.signIn(assent, forcing: false)
            #expect(try await story.balance(assent) == "1000.00")

            let sent = wire.sent
            #expect(sent.contains(where: isQuestion))
            let paths = sent.filter { !isQuestion($0) }.map { $0.path ?? "" }
            if sealing == .off {
                #expect(!paths.contains { $0.hasPrefix("/assent-pe/") })
                for place in ["/register", "/authenticate", "/access_token", "/app-info", "/accounts"] {
                    #expect(paths.contains { $0.contains(place) }, "\(place)")
                }
            } else {
                #expect(Set(paths) == ["/assent-pe/1/handshake", "/assent-pe/1/message"])
                #expect(wire.handshakes.count >= 3 && wire.messages.count >= 8, "\(wire)")
                #expect(sent.allSatisfy { $0.headerFields[.authorization] == nil })
            }
            await assent.shutdown()
            await keyring.shutdown()
        }
    }
}
