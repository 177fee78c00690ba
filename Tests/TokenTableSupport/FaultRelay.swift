package import AssentCore
import Foundation
package import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
package import TestSupport

/// A stretch of network in front of a provider, which can fail in every way that matters, and counts what it has read.
///
/// It ends TLS when it is given a certificate.
package final class FaultRelay: Sendable {
    package typealias Upstream = @Sendable (HTTPRequest, [UInt8]) async throws -> HTTPReply

    /// What happens to requests of a kind.
    package enum Fault: Sendable {
        /// This is the reply; the provider does not see the request.
        case reply(Int, String, type: String)
        /// The provider's reply without its refresh token.
        case withoutRefreshToken
        /// The provider answers, the client gets the end of its connection.
        case loseReply
        /// The provider answers, the client gets nothing.
        case swallowReply
        /// The provider does not see the request, and the client gets nothing.
        case holdRequest
        /// The provider answers, and the client gets it at ``FaultRelay/release()``.
        case holdReply
    }

    /// What is going on.
    package struct State: Sendable {
        package var faults: [TokenTableRow.Request: Fault] = [:]
        /// Requests that were read.
        package var requests: [TokenTableRow.Request] = []
        /// Replies that the provider gave, whether or not they went on.
        package var answered: [TokenTableRow.Request] = []
        /// Whether connections are ended before a byte of a reply.
        package var breaksConnections = false
        /// How often held replies were let go.
        package var releases = 0
    }

    package let port: Int
    package let state = Watched(State())
    private let upstream: Upstream
    private let context: NIOSSLContext?
    private let listener = Locked<(any Channel)?>(nil)
    private let reservation: ReservedPort
    private let held = Locked<[any Channel]>([])
    private let open = Locked<[ObjectIdentifier: any Channel]>([:])

    /// A relay on a free port of 127.0.0.1. With `tls` (certificate chain and key as PEM) it speaks HTTPS.
    package init(tls: (chainPEM: String, keyPEM: Secret)? = nil, upstream: @escaping Upstream) async throws {
        self.upstream = upstream
        context = try tls.map { chainPEM, keyPEM in
            let chain = try NIOSSLCertificate.fromPEMBytes(Array(chainPEM.utf8))
            let key = try NIOSSLPrivateKey(bytes: keyPEM.revealBytes(), format: .pem)
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
            configuration.applicationProtocols = ["http/1.1"]
            return try NIOSSLContext(configuration: configuration)
        }
        reservation = try ReservedPort()
        port = reservation.port
        try await listen()
    }

    /// The URL of a path here.
    package func url(_ path: String) -> String { "\(context == nil ? "http" : "https")://localhost:\(port)\(path)" }

    /// From now on connections are accepted.
    package func listen() async throws {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { [context, state, open] channel in
                let id = ObjectIdentifier(channel)
                open.withLock { $0[id] = channel }
                channel.closeFuture.whenComplete { _ in open.withLock { $0[id] = nil } }
                return channel.eventLoop.makeCompletedFuture {
                    if state.value.breaksConnections {
                        try channel.pipeline.syncOperations.addHandler(Breaking())
                        return
                    }
                    if let context {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                    }
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                        withPipeliningAssistance: false, withErrorHandling: false)
                    try channel.pipeline.syncOperations.addHandler(
                        Collecting { head, body, channel in self.arrived(head, body, channel) })
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        listener.withLock { $0 = channel }
    }

    /// Ends all connections, so that the next request needs one of its own.
    package func disconnect() async {
        for channel in open.withLock({ Array($0.values) }) { try? await channel.close().get() }
    }

    /// From now on connections are refused.
    package func refuse() async throws {
        let channel = listener.withLock { listener in
            defer { listener = nil }
            return listener
        }
        try await channel?.close().get()
        await disconnect()
    }

    /// Lets go of held replies.
    package func release() { state.update { $0.releases += 1 } }

    /// Everything works again, and nothing was read yet.
    package func reset() async throws {
        state.update {
            $0.faults = [:]
            $0.requests = []
            $0.answered = []
            $0.breaksConnections = false
        }
        for channel in held.withLock({ channels in
            defer { channels = [] }
            return channels
        }) { channel.close(promise: nil) }
        if listener.withLock({ $0 == nil }) { try await listen() }
    }

    package func stop() async { try? await refuse() }

    private func arrived(_ head: HTTPRequestHead, _ body: [UInt8], _ channel: any Channel) {
        Task { await self.handle(head, body, channel) }
    }

    private func handle(_ head: HTTPRequestHead, _ body: [UInt8], _ channel: any Channel) async {
        let kind = Self.kind(head, body)
        let (fault, release) = state.update { state in
            if let kind { state.requests.append(kind) }
            return (kind.flatMap { state.faults[$0] }, state.releases + 1)
        }
        switch fault {
        case .reply(let status, let text, let type):
            return answer(channel, status, [("Content-Type", type)], Array(text.utf8))
        case .holdRequest: return held.withLock { $0.append(channel) }
        default: break
        }
        do {
            let reply = try await upstream(try request(head), body)
            var bytes = try await reply.body.collect(upTo: 1 << 20)
            state.update { if let kind { $0.answered.append(kind) } }
            switch fault {
            case .loseReply: return channel.close(promise: nil)
            case .swallowReply: return held.withLock { $0.append(channel) }
            case .holdReply: await state.wait { $0.releases >= release }
            case .withoutRefreshToken:
                var object = try JSONValue.parse(bytes).object ?? JSONObject()
                object["refresh_token"] = nil
                bytes = JSONValue.object(object).serializedBytes()
            default: break
            }
            answer(
                channel, reply.status,
                reply.response.headerFields.filter { !Self.hopByHop.contains($0.name.canonicalName) }.map {
                    ($0.name.rawName, $0.value)
                }, bytes)
        } catch {
            answer(channel, 502, [("Content-Type", "text/plain")], Array("\(error)".utf8))
        }
    }

    private func request(_ head: HTTPRequestHead) throws -> HTTPRequest {
        var fields = HTTPFields()
        for (name, value) in head.headers {
            guard let name = HTTPField.Name(name), !Self.hopByHop.contains(name.canonicalName) else { continue }
            fields.append(HTTPField(name: name, value: value))
        }
        let method = HTTPRequest.Method(rawValue: head.method.rawValue) ?? .get
        return try HTTPRequest(method, url: url(head.uri), headerFields: fields)
    }

    private func answer(_ channel: any Channel, _ status: Int, _ fields: [(String, String)], _ body: [UInt8]) {
        var headers = HTTPHeaders(fields)
        headers.add(name: "Content-Length", value: "\(body.count)")
        let head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: status), headers: headers)
        channel.eventLoop.execute {
            channel.write(HTTPServerResponsePart.head(head), promise: nil)
            channel.write(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
            channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
        }
    }

    private static let hopByHop: Set = [
        "host", "connection", "content-length", "transfer-encoding", "keep-alive", "date",
    ]

    private static func kind(_ head: HTTPRequestHead, _ body: [UInt8]) -> TokenTableRow.Request? {
        let query = URLText.query(of: "http://localhost" + head.uri)
        if head.method == .GET, (try? query?.single("response_type")) == "code" { return .authorize }
        guard head.method == .POST, let form = try? FormEncoding.parse(body) else { return nil }
        switch form["grant_type"] {
        case "refresh_token": return .refresh
        case "authorization_code": return .code
        default: return form["token_type_hint"] == nil ? nil : .revoke
        }
    }
}

private final class Breaking: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.close(promise: nil) }
}

private final class Collecting: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    private let arrived: @Sendable (HTTPRequestHead, [UInt8], any Channel) -> Void
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []

    init(_ arrived: @escaping @Sendable (HTTPRequestHead, [UInt8], any Channel) -> Void) {
        self.arrived = arrived
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body(let part): body += part.readableBytesView
        case .end:
            if let head { arrived(head, body, context.channel) }
            (head, body) = (nil, [])
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
