import Assent
import AssentTesting
import HTTPTypes

/// A server with a listener that opens sealed calls, and a device configuration. It notes what it was sent unsealed.
struct SealingServer: Sendable {
    let listener = SealedListener()
    /// The URLs of calls that have left as they were.
    let plain = Locked<[String]>([])
    /// The paths by which the device configuration was asked for.
    let asked = Locked<[String]>([])

    /// The way to it. Without a document the device configuration is away.
    func transport(telling document: String? = nil) -> InMemoryTransport {
        let issuer = "https://am.example.com/am/oauth2/realms/root/realms/alpha"
        let (listener, plain, asked) = (listener, plain, asked)
        return InMemoryTransport { exchange in
            let path = exchange.request.path ?? ""
            if path.hasPrefix("/assent-pe/1/") { return try await listener.answer(exchange) }
            if path.hasSuffix("/.well-known/openid-configuration") {
                return .json(
                    200,
                    ["issuer": .string(issuer), "assent_device_config_endpoint": .string("\(issuer)/device_config")])
            }
            if path.contains("/device_config?") {
                asked.withLock { $0.append(path) }
                guard let document else { return .json(503, [:]) }
                return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(document))
            }
            plain.withLock { $0.append(exchange.request.url ?? "") }
            return .json(200, [:])
        }
    }

    /// An app whose trust file has this mode, or says nothing of sealed calls, and which the server tells this of them,
    /// or nothing.
    func app(mode: String?, says: String?, of servers: Servers) async throws -> Assent {
        let payload = try mode.map { try servers.sealing($0, with: [listener, SealedListener()]) }
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
        return try Assent(configuration)
    }
}
