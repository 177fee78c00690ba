import AssentCore
import AssentPayload
import AssentStore
import Foundation
import HTTPTypes
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A client of payload encryption as its page describes one, with the values that both sides share.
struct SealedClient: Sendable {
    static let field = [("Content-Type", "application/assent-pe")]

    let node: ServerFixture
    let origin: Origin
    let toGateway: Bool
    let secrets: PayloadSecrets

    /// A request as bytes, and what its reply is bound to.
    struct Sealed: Sendable {
        let head: FrameHead
        let bytes: [UInt8]
    }

    /// An opened reply.
    struct Opened: Sendable {
        let response: HTTPResponse
        let content: [UInt8]

        var status: Int { response.status.code }
        var json: JSONValue { (try? JSONValue.parse(content)) ?? .null }
    }

    static func url(_ node: ServerFixture, toGateway: Bool, _ path: String) -> String {
        toGateway ? node.gateway(path) : node.root(path)
    }

    static func origin(_ node: ServerFixture, toGateway: Bool) throws -> Origin {
        try Origin(toGateway ? try #require(node.endpoints.gateway) : node.endpoints.server)
    }

    /// A static key of the node's database.
    static func key(_ node: ServerFixture, days: Int64 = 365) async throws -> PayloadKeys.Listed {
        let context = node.server.context
        let now = context.clock.epochSeconds
        return try await PayloadKeys(context).add(notBefore: now, notAfter: now + days * 86_400) { _ in
            SQLStatement.read("SELECT 1 AS one")
        }
    }

    static func handshake(
        _ node: ServerFixture, _ key: PayloadKeys.Listed, client: String? = nil, version: String = "1.0",
        toGateway: Bool = true
    ) throws -> ClientHandshake {
        let peer = PayloadPeer(
            role: client == nil ? .app : .device, origin: try origin(node, toGateway: toGateway).description,
            client: client, app: "pay", version: version, platform: "linux")
        let bytes = try #require(Base64URL.decode(key.publicKey))
        return try ClientHandshake(peer, serverKey: try PayloadKey(bytes), random: SystemRandom())
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
        let answer = try await Self.send(node, handshake.request.body, toGateway: toGateway, fields: fields)
        #expect(answer.status == 200, "\(answer.text)")
        self.node = node
        self.toGateway = toGateway
        origin = try Self.origin(node, toGateway: toGateway)
        secrets = try handshake.finish(answer.bytes).secrets
    }

    func request(
        _ method: HTTPRequest.Method, _ path: String, _ fields: HTTPFields = [:]
    ) -> HTTPRequest {
        HTTPRequest(
            method: method, scheme: origin.scheme, authority: origin.authority, path: path, headerFields: fields)
    }

    /// Seals a request of known length.
    func sealed(_ request: HTTPRequest, _ content: [UInt8] = [], number: UInt64) throws -> Sealed {
        try sealed(plaintext: BinaryHTTPWriter.request(request, content: content), number: number)
    }

    func sealed(plaintext: [UInt8], number: UInt64) throws -> Sealed {
        let head = FrameHead(.request, session: secrets.session, number: number, random: SystemRandom())
        var sealer = FrameSealer(head, key: secrets.request, bound: [])
        let bytes =
            try sealer.seal(plaintext + Padding.bytes(behind: plaintext.count)) + sealer.finish()
        return Sealed(head: head, bytes: bytes)
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
        let head = try FrameHead(answer.bytes.prefix(FrameHead.length))
        #expect(head.kind == .reply)
        #expect(head.number == request.number)
        var opener = FrameOpener(head, key: secrets.reply, bound: request.binding)
        let plaintext = try opener.open(answer.bytes.dropFirst(FrameHead.length))
        try opener.finish()
        var reader = BinaryHTTPReader(.reply)
        var response: HTTPResponse?
        var content: [UInt8] = []
        for part in try reader.read(plaintext) + reader.finish() {
            switch part {
            case .response(let found): response = found
            case .content(let bytes): content += bytes
            case .request: Issue.record("a reply has a request")
            }
        }
        return Opened(response: try #require(response), content: content)
    }
}

/// What a refusal says.
extension Answer {
    var refusal: PayloadRefusal? { PayloadRefusal(status: status, body: bytes) }
}
