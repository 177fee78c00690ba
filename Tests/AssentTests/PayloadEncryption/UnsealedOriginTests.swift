import Assent
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Payload encryption: absolute URLs of origins that are not sealed")
struct UnsealedOriginTests {
    private static let elsewhere = "https://am.example.com/rates"

    private let servers = Servers()
    private let listener = SealedListener()
    /// The URLs of calls that have left as they were.
    private let plain = Locked<[String]>([])

    private func transport(telling document: String? = nil) -> InMemoryTransport {
        let (listener, plain) = (listener, plain)
        let issuer = "https://am.example.com/am/oauth2/realms/root/realms/alpha"
        return InMemoryTransport { exchange in
            let path = exchange.request.path ?? ""
            if path.hasPrefix("/assent-pe/1/") { return try await listener.answer(exchange) }
            if path.hasSuffix("/.well-known/openid-configuration") {
                return .json(
                    200,
                    ["issuer": .string(issuer), "assent_device_config_endpoint": .string("\(issuer)/device_config")])
            }
            if path.contains("/device_config?") {
                guard let document else { return .json(503, [:]) }
                return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(document))
            }
            plain.withLock { $0.append(exchange.request.url ?? "") }
            return .json(200, [:])
        }
    }

    /// Why a request is refused; `nil` when it is answered.
    private func refusal(_ assent: Assent, _ request: ResourceRequest) async -> ResourceError? {
        do throws(ResourceError) {
            _ = try await assent.deviceClient.sendUnauthenticatedRequest(request)
            return nil
        } catch {
            return error
        }
    }

    private static func allowing(_ url: String) -> ResourceRequest { ResourceRequest(path: url, allowsUnsealed: true) }

    @Test("3: In an app that seals calls a request with such a URL is refused, and leaves where it says that it may")
    func configured() async throws {
        var configuration = Assent.Configuration(
            server: "https://am.example.com/am", realm: "alpha",
            client: .init(id: "bank", redirectURI: "https://bank.example/app/callback"),
            resources: [SealedListener.origin: .nothing, "https://am.example.com": .nothing], pins: [:],
            vault: .memory)
        configuration.resourceBase = "https://am.example.com/v1"
        configuration.transport = transport()
        configuration.clock = servers.clock
        let unsealing = try Assent(configuration)
        configuration.payloadEncryption = [
            SealedListener.origin: Assent.PayloadEncryption(
                keys: [try Assent.PayloadEncryption.Key(listener.publicKey)])
        ]
        let assent = try Assent(configuration)

        let error = await refusal(assent, .get(Self.elsewhere))
        #expect(error?.number == 10102 && error?.domain == .generic && error?.suggestion?.isEmpty == false)
        #expect(plain.withLock { $0.isEmpty })
        #expect(listener.handshakes == 0)

        // The controls: it says that it may, its path is the configuration's, its origin is sealed, nothing is sealed.
        #expect(await refusal(assent, Self.allowing(Self.elsewhere)) == nil)
        #expect(await refusal(assent, .get("rates")) == nil)
        #expect(plain.withLock { $0 } == [Self.elsewhere, "https://am.example.com/v1/rates"])
        let sealed = SealedListener.origin + "/rates"
        for request in [ResourceRequest.get(sealed), Self.allowing(sealed)] {
            #expect(await refusal(assent, request) == nil)
        }
        #expect(listener.calls.count == 2)
        #expect(await refusal(unsealing, .get(Self.elsewhere)) == nil)
        #expect(plain.withLock { $0.count } == 3)
    }

    @Test("What a request says of this stays with it when a file becomes its content")
    func upload() throws {
        for allows in [true, false] {
            let request = ResourceRequest(path: Self.elsewhere, method: .put, allowsUnsealed: allows)
            #expect(try request.upload(from: #filePath).allowsUnsealed == allows)
        }
    }

    @Test(
        "3, 35: With a trust file it is refused where calls are sealed, and leaves where the server has that off",
        arguments: [
            ("always", "off", true), ("server", "on", true), ("server", nil, true), ("server", "off", false),
            (nil, "on", false),
        ] as [(String?, String?, Bool)])
    func trusted(mode: String?, says: String?, isRefused: Bool) async throws {
        let keys = try [listener, SealedListener()].map { listener in
            let key = try Assent.PayloadEncryption.Key(listener.publicKey)
            return JSONValue(
                dictionaryLiteral: ("kid", .string(key.kid)), ("x", .string(listener.publicKey)),
                ("notAfter", .integer(servers.clock.epochSeconds + 3600)))
        }
        let payload = mode.map { mode -> JSONValue in
            [
                "suite": "pe1", "mode": .string(mode), "keys": .array(keys),
                "origins": [.string(SealedListener.origin)],
            ]
        }
        let signer = try SoftwareSigningKey.generate(.es256)
        let file = try await servers.trustFile(sends: ["user"], payload: payload, config: signer)
        var document: String?
        if let says {
            document = try await servers.deviceConfiguration(["payloadEncryption": .string(says)], by: signer)
        }
        var configuration = Assent.Configuration(
            server: "https://am.example.com/am", realm: "alpha",
            client: .init(id: "bank", redirectURI: "https://bank.example/app/callback"), trust: file, vault: .memory)
        configuration.transport = transport(telling: document)
        configuration.clock = servers.clock
        let assent = try Assent(configuration)

        let error = await refusal(assent, .get(Self.elsewhere))
        #expect(error?.number == (isRefused ? 10102 : nil))
        #expect(plain.withLock { $0 } == (isRefused ? [] : [Self.elsewhere]))
        #expect(await refusal(assent, Self.allowing(Self.elsewhere)) == nil)
        #expect(plain.withLock { $0.last } == Self.elsewhere)
        #expect(listener.handshakes == 0)
    }
}
