import Assent
import AssentCore
import AssentServer
import AssentTesting
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import TestSupport
import Testing

@testable import AssentDemo

/// An app with a trust file and connections of its own, which compare pins by that file.
@Suite("The pins of a later trust file, on real sockets")
struct TrustedPinTests {
    /// A service behind the gateway, for everybody. What is asked of `/open/held` runs until it is told to end, and the
    /// app's second trust file is there as soon as a GET and a POST run.
    private struct Service: Sendable {
        /// The methods of the calls that have come to `/open/held`.
        let held = Watched<[String]>([])
        let isReleased = Watched(false)
        let next = Locked("")
        let port: Int

        /// The example's file with the service's route.
        func routed(_ file: String) -> String {
            let route = """
                  routes:
                    - {name: open, path: /open, upstream: "http://127.0.0.1:\(port)", public: true}

                """
            return file.replacing("  routes:\n", with: route)
        }

        func hold(_ request: Request) async -> Response {
            held.update { $0.append(request.method.rawValue) }
            await isReleased.wait { $0 }
            return Response(status: .ok)
        }

        func trustFile() async -> Response {
            await held.wait { $0.count >= 2 }
            return Response(status: .ok, body: .init(byteBuffer: ByteBuffer(string: next.withLock { $0 })))
        }

        /// Runs `body` beside the service, and ends it.
        static func run(_ body: (Service) async throws -> Void) async throws {
            let found = Watched<Service?>(nil)
            let router = Router()
            router.get("open/held") { request, _ in await found.value?.hold(request) ?? Response(status: .notFound) }
            router.post("open/held") { request, _ in await found.value?.hold(request) ?? Response(status: .notFound) }
            router.get("open/trust/2") { _, _ in await found.value?.trustFile() ?? Response(status: .notFound) }
            try await withLoopbackService(router.buildResponder()) { port in
                let service = Service(port: port)
                found.update { $0 = service }
                try await body(service)
            }
        }
    }

    private static let app = "bank-app"

    /// Pins of keys that nobody has.
    private static func strangers() throws -> [Pin] {
        try [1, 2].map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }
    }

    /// A version that pins the server's keys as they are, and others of the gateway.
    private func file(
        _ version: Int64, _ story: Story, pinning pins: [Pin], _ keys: [SoftwareSigningKey]
    ) async throws -> String {
        let now = story.clock.epochSeconds
        let spare = try Pin(sha256: [UInt8](repeating: 3, count: 32))
        func host(_ url: String, _ pins: [Pin]) throws -> JSONValue {
            let pinned = (pins + [spare]).map { pin -> JSONValue in
                ["spki": .string(Base64URL.encode(pin.sha256)), "notAfter": .integer(now + 86_400)]
            }
            return ["host": .string(try Origin(url).authority), "pins": .array(pinned), "sends": []]
        }
        let endpoints = story.world.endpoints
        let jwks = try keys.map { try JWK(publicKeyInfo: $0.publicKeyInfo) }
        let members: JSONObject = [
            "v": 1, "aud": .string("\(Self.app)/\(HostPlatform.name)/demo"), "version": .integer(version),
            "iat": .integer(now), "keys": .array(jwks.map(\.json)),
            "hosts": [try host(endpoints.server, endpoints.pins), try host(story.gateway, pins)],
            "issuer": .string("\(endpoints.server)/oauth2/realms/root/realms/alpha"),
            "identity": .string(Base64URL.encode([UInt8](repeating: 9, count: 32))),
            "config": .array(jwks.map(\.json)), "controls": ["debugger": "off", "rooted": "off", "preload": "off"],
            "source": [.string("\(story.gateway)/open/trust")],
        ]
        let header: JSONObject = ["typ": "assent-trust+jwt", "kid": .string(jwks[0].thumbprint)]
        return try await JWS.sign(JSONValue.object(members).serializedBytes(), header: header, with: keys[0])
    }

    private func app(_ story: Story, shippedWith file: String) throws -> Assent {
        let endpoints = story.world.endpoints
        var configuration = Assent.Configuration(
            server: endpoints.server, realm: "alpha",
            client: .init(id: Self.app, redirectURI: "http://127.0.0.1/callback"),
            trust: try TrustFile(shipped: file), vault: .memory)
        if let authority = endpoints.authorityFile { configuration.trustRoots = .pemFile(authority) }
        // Nothing ends because time has passed.
        configuration.clock = ManualClock(story.clock.now)
        configuration.logger = story.logger
        configuration.leastLimit = story.world.leastLimit
        return try Assent(configuration)
    }

    @Test(
        "A pin that a later file has no more ends the calls that run on it, at once and for good; others run on",
        arguments: [true, false])
    func removed(isRemoved: Bool) async throws {
        try await Service.run { service in
            try await World.run(logger: CollectingLog().logger, editing: service.routed) { story in
                defer { service.isReleased.update { $0 = true } }
                let keys = try (0..<2).map { _ in try SoftwareSigningKey.generate(.es256) }
                let pins = story.world.endpoints.pins
                let assent = try app(story, shippedWith: try await file(1, story, pinning: pins, keys))
                let second = try await file(2, story, pinning: isRemoved ? Self.strangers() : pins, keys)
                service.next.withLock { $0 = second }

                let url = story.gateway + "/open/held"
                let requests = try [ResourceRequest.get(url), ResourceRequest.post(url, json: ["to": "Bob"])]
                let calls = requests.map { request in
                    Task {
                        await ResourceError.thrown {
                            try await assent.deviceClient.sendUnauthenticatedRequest(request)
                        }
                    }
                }
                let expected: ResourceError.Code? = isRemoved ? .serverUntrusted : nil
                #expect(await assent.updateTrust() == 2)
                // Where their pin is gone, nothing else lets them end.
                if !isRemoved { service.isReleased.update { $0 = true } }
                for call in calls {
                    let error = await call.value
                    #expect(error?.code == expected, "\(error as Any)")
                    // The service has got it.
                    #expect(error == nil || error?.transportError?.mayHaveHadEffect == true)
                }
                #expect(service.held.value.sorted() == ["GET", "POST"])

                let later = await ResourceError.thrown {
                    try await assent.deviceClient.sendUnauthenticatedRequest(.get(url))
                }
                #expect(later?.code == expected, "\(later as Any)")
                #expect(service.held.value.count == (isRemoved ? 2 : 3))
                await assent.shutdown()
            }
        }
    }
}
