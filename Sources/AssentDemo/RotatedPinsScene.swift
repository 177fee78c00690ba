import Assent
import AssentCore
import AssentJOSE
import AssentServer
import Foundation

/// An app that was released when the bank had other keys: it learns the new ones from a signed file, and from nobody
/// else.
struct RotatedPinsScene: Sendable {
    private static let app = "bank-app"

    private let story: Story

    /// The app's device goes on while the story stands still: an app looks for a later file once an hour.
    private let clock: DemoClock

    init(_ story: Story) {
        self.story = story
        clock = DemoClock(story.clock.now)
    }

    /// Tells of an app with connections of its own, which compare pins by the trust file.
    func tell() async throws {
        let keys = try (0..<2).map { _ in try SoftwareSigningKey.generate(.es256) }
        let stranger = try SoftwareSigningKey.generate(.es256)
        guard let signer = keys.first else { return }
        story.narration.tell(
            .note(.app, "was released when the bank had other keys, which its trust file pins, in version 1"))
        let old = try [1, 2].map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }
        let assent = try app(shippedWith: try await file(1, pinning: old, keys, by: signer))
        let refused = await ResourceError.thrown { try await ask(assent) }
        story.check("the bank has new keys: nothing is sent to it", refused?.code == .serverUntrusted)

        try await publish(2, pinning: story.world.endpoints.pins, keys, by: signer)
        story.narration.tell(.note(.server, "serves version 2, which the bank has signed offline, with the new pins"))
        let version = await later(assent)
        story.check("the app takes it, and needs no release", version == 2)
        let isOpen = try await ask(assent)
        story.check("it asks whether the bank is open: 200", isOpen == 200)

        try await publish(3, pinning: old, keys, by: stranger)
        story.narration.tell(.note(.thief, "has the machine that serves it, puts a version 3 there, and signs it"))
        let kept = await later(assent)
        let isStillOpen = try await ask(assent)
        story.check("the app still goes by version 2: the bank has not signed that", kept == 2 && isStillOpen == 200)
        await assent.shutdown()
    }

    private func app(shippedWith file: String) throws -> Assent {
        let endpoints = story.world.endpoints
        var configuration = Assent.Configuration(
            server: endpoints.server, realm: "alpha",
            client: .init(id: Self.app, redirectURI: "http://127.0.0.1/callback"),
            trust: try TrustFile(shipped: file), vault: .memory)
        if let authority = endpoints.authorityFile { configuration.trustRoots = .pemFile(authority) }
        configuration.clock = clock
        configuration.logger = story.logger
        configuration.leastLimit = story.world.leastLimit
        return try Assent(configuration)
    }

    /// Whether the bank is open, which everybody may ask: the reply's status.
    private func ask(_ assent: Assent) async throws -> Int {
        try await assent.deviceClient.sendUnauthenticatedRequest(.get(story.gateway + "/status")).status
    }

    /// The version by which the app goes when it has looked for another one.
    private func later(_ assent: Assent) async -> Int? {
        // The server looks into its directory every few seconds.
        story.move(6, "the server looks for new versions")
        clock.advance(by: 3601)
        return await assent.updateTrust()
    }

    private func publish(
        _ version: Int64, pinning pins: [Pin], _ keys: [SoftwareSigningKey], by signer: SoftwareSigningKey
    ) async throws {
        let text = try await file(version, pinning: pins, keys, by: signer)
        try Data(text.utf8).write(
            to: URL(fileURLWithPath: "\(story.world.trustFiles)/\(version)"), options: .atomic)
    }

    /// A version as `assent config sign` makes one.
    private func file(
        _ version: Int64, pinning pins: [Pin], _ keys: [SoftwareSigningKey], by signer: SoftwareSigningKey
    ) async throws -> String {
        let now = story.clock.epochSeconds
        // One that nobody has, so that there are two in any case.
        let backup = try Pin(sha256: [UInt8](repeating: 3, count: 32))
        let pinned = (pins + [backup]).map { pin -> JSONValue in
            ["spki": .string(Base64URL.encode(pin.sha256)), "notAfter": .integer(now + 90 * 86_400)]
        }
        let hosts = try [story.world.endpoints.server, story.gateway].map { url -> JSONValue in
            ["host": .string(try Origin(url).authority), "pins": .array(pinned), "sends": []]
        }
        let jwks = try keys.map { try JWK(publicKeyInfo: $0.publicKeyInfo).json }
        let members: JSONObject = [
            "v": 1, "aud": .string("\(Self.app)/\(HostPlatform.name)/demo"), "version": .integer(version),
            "iat": .integer(now), "keys": .array(jwks), "hosts": .array(hosts),
            "issuer": .string("\(story.world.endpoints.server)/oauth2/realms/root/realms/alpha"),
            "identity": .string(Base64URL.encode([UInt8](repeating: 9, count: 32))), "config": .array(jwks),
            "controls": ["debugger": "off", "rooted": "off", "preload": "off"],
            "source": [.string("\(story.world.endpoints.server)/trust/bank")],
        ]
        let header: JSONObject = [
            "typ": "assent-trust+jwt", "kid": .string(try JWK(publicKeyInfo: signer.publicKeyInfo).thumbprint),
        ]
        return try await JWS.sign(JSONValue.object(members).serializedBytes(), header: header, with: signer)
    }
}
