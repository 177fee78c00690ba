import AssentCore
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOPosix

/// Opens the WebSocket of a caller who was let in, and stays with it until its end.
struct TunnelOpening: Sendable {
    /// The connection of the request that is being answered, where it may become a tunnel.
    @TaskLocal static var connection: (any Channel)?

    let route: GatewayRoute
    let settings: RouteTunnels
    let handshake: WebSocketHandshake

    /// What is asked of the service.
    let target: String

    /// The fields that the service gets, without those of the handshake's hop.
    let fields: HTTPFields

    let count: TunnelCount
    /// Whose place it takes (``ClientAddress/limitKey``).
    let address: String?
    let logger: Logger

    /// Looks the caller up again; `nil` where nobody was asked who they are.
    let isGranted: (@Sendable () async -> Bool)?

    /// The service's end.
    private struct ServiceEnd {
        let channel: any Channel
        let peer: NIOLoopBound<TunnelPeer>
        let head: ServiceHead
    }

    /// Returns the answer where there is no tunnel. After one there is nothing to answer, and nobody sees what is
    /// returned.
    func run() async -> Response {
        guard let connection = Self.connection else {
            return .problem(400, "A WebSocket cannot be opened on this connection.")
        }
        guard count.enter(route.name, limit: settings.limit, for: address) else {
            logger.notice(
                """
                a WebSocket was refused: there are as many as maxTunnels or the open files (ulimit -n) allow, or as \
                its address may have
                """,
                metadata: ["route": "\(route.name)", "address": "\(address ?? "none")"])
            return .problem(
                503, "There are as many open WebSockets as there may be.", members: ["forwarded": "no"])
        }
        defer { count.leave(route.name, for: address) }
        do {
            try await connection.triggerUserOutboundEvent(TunnelCommand.expectSilence).get()
        } catch {
            return .problem(400, "Nothing may be sent before the answer to the handshake.")
        }
        let end: ServiceEnd
        do {
            end = try await ask(for: connection)
        } catch {
            logger.notice("the protected service opened no WebSocket", metadata: ["route": "\(route.name)"])
            return await givingUp(
                connection, .problem(502, "The service cannot be reached, or gave no answer to the handshake."))
        }
        guard let head = handshake.reply(to: end.head) else {
            end.channel.close(promise: nil)
            let status = (400..<600).contains(end.head.status) ? end.head.status : 502
            return await givingUp(connection, .problem(status, "The service did not open the WebSocket."))
        }
        let tunnel = Tunnel()
        do {
            try await connection.triggerUserOutboundEvent(
                TunnelCommand.open(ByteBuffer(string: head), tunnel, end.peer)
            ).get()
        } catch {
            end.channel.close(promise: nil)
            return .problem(400, "The connection ended before the WebSocket was open.")
        }
        let limits = TunnelLife.Limits(
            silence: Int64(settings.silenceSeconds) * 1000,
            recheck: isGranted == nil ? nil : Int64(settings.recheckSeconds) * 1000)
        let ending = await tunnel.watch(limits, on: connection.eventLoop) { await isGranted?() ?? true }
        end.channel.close(promise: nil)
        if let ending {
            logger.info(
                "a WebSocket was closed", metadata: ["route": "\(route.name)", "reason": "\(ending.rawValue)"])
            connection.close(promise: nil)
        } else {
            await waitUntilClosed(connection)
        }
        return Response(status: .ok)
    }

    /// The service has ended the tunnel, and the client's end closes by itself when all that it was sent is written; a
    /// client that does not take it is not waited for.
    private func waitUntilClosed(_ connection: any Channel) async {
        let timer = connection.eventLoop.scheduleTask(in: .seconds(Int64(settings.closeSeconds))) {
            connection.close(promise: nil)
        }
        try? await connection.closeFuture.get()
        timer.cancel()
    }

    private func givingUp(_ connection: any Channel, _ response: Response) async -> Response {
        try? await connection.triggerUserOutboundEvent(TunnelCommand.giveUp).get()
        return response
    }

    /// Connects to the service and shakes hands. Both ends are on one event loop, so that neither waits for the other.
    private func ask(for connection: any Channel) async throws -> ServiceEnd {
        let loop = connection.eventLoop
        // A route with WebSockets has one service.
        let origin = try Origin(headerValue: route.upstream.addresses.first ?? "")
        let answered = loop.makePromise(of: ServiceHead.self)
        // On the loop, so that the handler is there before it reads: the service may speak, or close, at once.
        let connected = loop.flatSubmit {
            ClientBootstrap(group: loop).connectTimeout(.seconds(Int64(settings.connectSeconds)))
                .connect(host: origin.host.text, port: origin.port)
                .flatMapThrowing { channel in
                    let peer = TunnelPeer(answered)
                    try channel.pipeline.syncOperations.addHandler(peer)
                    return (channel, NIOLoopBound(peer, eventLoop: loop))
                }
        }
        let (channel, peer): (any Channel, NIOLoopBound<TunnelPeer>)
        do {
            (channel, peer) = try await connected.get()
        } catch {
            answered.fail(error)
            throw error
        }
        connection.closeFuture.whenComplete { _ in channel.close(promise: nil) }
        let timer = loop.scheduleTask(in: .seconds(Int64(settings.answerSeconds))) { channel.close(promise: nil) }
        defer { timer.cancel() }
        let head = handshake.request(target: target, authority: origin.authority, fields: fields)
        channel.writeAndFlush(ByteBuffer(string: head), promise: nil)
        return ServiceEnd(channel: channel, peer: peer, head: try await answered.futureResult.get())
    }
}
