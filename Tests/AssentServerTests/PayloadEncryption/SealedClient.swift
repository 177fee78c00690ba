import AssentCore
import AssentPayload
import AssentStore
import HTTPTypes
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A client of payload encryption as its page describes one, with the values that both sides share.
struct SealedClient: Sendable {
    typealias Sealed = SealedChannel.Sealed
    typealias Opened = SealedChannel.Opened

    static let field = [("Content-Type", "application/assent-pe")]

    let node: ServerFixture
    let toGateway: Bool
    let session: SealedChannel

    static func url(_ node: ServerFixture, toGateway: Bool, _ path: String) -> String {
        toGateway ? node.gateway(path) : node.root(path)
    }

    static func origin(_ node: ServerFixture, toGateway: Bool) throws -> Origin {
        try Origin(toGateway ? try #require(node.endpoints.gateway) : node.endpoints.server)
    }

    /// A static key of the node's database.
    static func key(_ node: ServerFixture, days: Int64 = 365) async throws -> PayloadKeys.Listed {
        try await key(node.server.context, days: days)
    }

    /// A static key of a database.
    static func key(_ context: EngineContext, days: Int64 = 365) async throws -> PayloadKeys.Listed {
        let now = context.clock.epochSeconds
        return try await PayloadKeys(context).add(notBefore: now, notAfter: now + days * 86_400) { _ in
            SQLStatement.read("SELECT 1 AS one")
        }
    }

    static func handshake(
        _ node: ServerFixture, _ key: PayloadKeys.Listed, client: String? = nil, version: String = "1.0",
        toGateway: Bool = true
    ) throws -> ClientHandshake {
        try SealedChannel.handshake(
            at: try origin(node, toGateway: toGateway), key, client: client, version: version)
    }

    static func send(
        _ node: ServerFixture, _ body: [UInt8], toGateway: Bool = true, fields: [(String, String)] = []
    ) async throws -> Answer {
        try await node.send(
            "POST", url(node, toGateway: toGateway, "/assent-pe/1/handshake"),
            [("Content-Type", "application/json")] + fields, body: body)
    }

    /// A client with a session; as an installation, which proves its key.
    init(
        _ node: ServerFixture, _ key: PayloadKeys.Listed, toGateway: Bool = true,
        as instance: (RegistrationDoor.Instance, at: RegistrationDoor)? = nil
    ) async throws {
        let handshake = try Self.handshake(node, key, client: instance?.0.id, toGateway: toGateway)
        var fields: [(String, String)] = []
        if let (instance, door) = instance {
            let url = Self.url(node, toGateway: toGateway, "/assent-pe/1/handshake")
            let proof = try await door.proof("POST", url, by: instance.key) {
                $0["pe"] = .string(handshake.request.claim)
            }
            fields.append(("DPoP", proof))
        }
        let proved = fields
        self.node = node
        self.toGateway = toGateway
        session = try await SealedChannel(
            at: try Self.origin(node, toGateway: toGateway), handshake
        ) { try await Self.send(node, $0, toGateway: toGateway, fields: proved) }
    }

    func request(_ method: HTTPRequest.Method, _ path: String, _ fields: HTTPFields = [:]) -> HTTPRequest {
        session.request(method, path, fields)
    }

    /// Seals a request of known length.
    func sealed(_ request: HTTPRequest, _ content: [UInt8] = [], number: UInt64) throws -> Sealed {
        try session.sealed(request, content, number: number)
    }

    func sealed(plaintext: [UInt8], number: UInt64) throws -> Sealed {
        try session.sealed(plaintext: plaintext, number: number)
    }

    /// Sends what was sealed to the client's node, or to another one.
    func send(_ bytes: [UInt8], on other: ServerFixture? = nil) async throws -> Answer {
        try await (other ?? node).send(
            "POST", Self.url(other ?? node, toGateway: toGateway, "/assent-pe/1/message"), Self.field, body: bytes)
    }

    /// Sends a request and opens the reply, which must be sealed for it.
    func call(_ sealed: Sealed, on other: ServerFixture? = nil) async throws -> Opened {
        try open(try await send(sealed.bytes, on: other), to: sealed.head)
    }

    func open(_ answer: Answer, to request: FrameHead) throws -> Opened {
        #expect(answer.status == 200, "\(answer.text)")
        #expect(answer["content-type"] == "application/assent-pe")
        return try session.open(answer, to: request)
    }
}

/// What a refusal says.
extension Answer {
    var refusal: PayloadRefusal? { PayloadRefusal(status: status, body: bytes) }
}
