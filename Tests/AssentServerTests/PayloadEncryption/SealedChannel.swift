import AssentCore
import AssentPayload
import Foundation
import HTTPTypes
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A session of payload encryption at a listener, whatever carries its messages.
struct SealedChannel: Sendable {
    let origin: Origin
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

    /// The handshake of an installation of the app `pay`; with a client id that of one that proves its key.
    static func handshake(
        at origin: Origin, _ key: PayloadKeys.Listed, client: String? = nil, version: String = "1.0"
    ) throws -> ClientHandshake {
        let peer = PayloadPeer(
            role: client == nil ? .app : .device, origin: origin.description, client: client, app: "pay",
            version: version, platform: "linux")
        let bytes = try #require(Base64URL.decode(key.publicKey))
        return try ClientHandshake(peer, serverKey: try PayloadKey(bytes), random: SystemRandom())
    }

    /// Makes a session by a handshake that `send` carries.
    init(
        at origin: Origin, _ handshake: ClientHandshake, _ send: ([UInt8]) async throws -> Answer
    ) async throws {
        let answer = try await send(handshake.request.body)
        #expect(answer.status == 200, "\(answer.text)")
        self.origin = origin
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

    /// Opens the reply to a request.
    ///
    /// - Throws: `PayloadError` for anything else.
    func open(_ answer: Answer, to request: FrameHead) throws -> Opened {
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
