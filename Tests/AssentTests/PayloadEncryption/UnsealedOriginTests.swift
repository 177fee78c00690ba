import Assent
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Payload encryption: absolute URLs of origins that are not sealed")
struct UnsealedOriginTests {
    private static let elsewhere = "https://am.example.com/rates"

    private let servers = Servers()
    private let server = SealingServer()

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
        configuration.transport = server.transport()
        configuration.clock = servers.clock
        let unsealing = try Assent(configuration)
        configuration.payloadEncryption = [
            SealedListener.origin: Assent.PayloadEncryption(
                keys: [try Assent.PayloadEncryption.Key(server.listener.publicKey)])
        ]
        let assent = try Assent(configuration)

        let error = await refusal(assent, .get(Self.elsewhere))
        #expect(error?.number == 10102 && error?.domain == .generic && error?.suggestion?.isEmpty == false)
        #expect(server.plain.withLock { $0.isEmpty })
        #expect(server.listener.handshakes == 0)

        // The controls: it says that it may, its path is the configuration's, its origin is sealed, nothing is sealed.
        #expect(await refusal(assent, Self.allowing(Self.elsewhere)) == nil)
        #expect(await refusal(assent, .get("rates")) == nil)
        #expect(server.plain.withLock { $0 } == [Self.elsewhere, "https://am.example.com/v1/rates"])
        let sealed = SealedListener.origin + "/rates"
        for request in [ResourceRequest.get(sealed), Self.allowing(sealed)] {
            #expect(await refusal(assent, request) == nil)
        }
        #expect(server.listener.calls.count == 2)
        #expect(await refusal(unsealing, .get(Self.elsewhere)) == nil)
        #expect(server.plain.withLock { $0.count } == 3)
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
        let assent = try await server.app(mode: mode, says: says, of: servers)
        let error = await refusal(assent, .get(Self.elsewhere))
        #expect(error?.number == (isRefused ? 10102 : nil))
        #expect(server.plain.withLock { $0 } == (isRefused ? [] : [Self.elsewhere]))
        #expect(await refusal(assent, Self.allowing(Self.elsewhere)) == nil)
        #expect(server.plain.withLock { $0.last } == Self.elsewhere)
        #expect(server.listener.handshakes == 0)
    }
}
