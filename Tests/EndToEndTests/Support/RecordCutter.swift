import AssentCore
import AssentServer
import NIOCore
import NIOPosix

@testable import AssentDemo

/// A stretch of network before the gateway of a story that ends a connection within a TLS record: it passes so many
/// more bytes in one direction, and nothing after that.
final class RecordCutter: Sendable {
    enum Direction: CaseIterable, Sendable { case request, reply }

    private struct Cut {
        let direction: Direction
        var left: Int
    }

    private struct State {
        var target: Int?
        var cut: Cut?
        var cuts = 0
    }

    /// Where clients find it: the gateway's public address.
    let url: String
    private let listener: any Channel
    private let state: Locked<State>

    /// How many connections were cut.
    var cuts: Int { state.withLock { $0.cuts } }

    /// Runs `body` beside one, and ends it.
    static func run(_ body: (RecordCutter) async throws -> Void) async throws {
        let cutter = try await RecordCutter()
        do {
            try await body(cutter)
        } catch {
            try? await cutter.listener.close()
            throw error
        }
        try await cutter.listener.close()
    }

    private init() async throws {
        let state = Locked(State())
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { inbound in
                guard let port = state.withLock({ $0.target }) else { return inbound.close() }
                return ClientBootstrap(group: inbound.eventLoop)
                    // Not ten seconds, the usual limit.
                    .connectTimeout(.hours(1))
                    .connect(host: "127.0.0.1", port: port)
                    .flatMap { outbound in
                        inbound.eventLoop.makeCompletedFuture {
                            try inbound.pipeline.syncOperations.addHandler(
                                Pipe(to: outbound) { Self.passed($0, .request, state) })
                            try outbound.pipeline.syncOperations.addHandler(
                                Pipe(to: inbound) { Self.passed($0, .reply, state) })
                        }
                    }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.state = state
        url = "https://localhost:\(listener.localAddress?.port ?? 0)"
    }

    /// Makes the gateway one that clients find here.
    func place(_ configuration: inout ServerConfiguration) { configuration.gateway?.publicURL = url }

    /// Leads to the gateway of a story.
    func join(_ story: Story) {
        let port = story.world.relay.port
        state.withLock { $0.target = port }
    }

    /// Ends a connection when so many more bytes have passed.
    func cut(_ direction: Direction, after count: Int) {
        state.withLock { $0.cut = Cut(direction: direction, left: count) }
    }

    /// How much of these bytes goes on; `nil` for all of them.
    private static func passed(_ count: Int, _ direction: Direction, _ state: Locked<State>) -> Int? {
        state.withLock { state in
            guard var cut = state.cut, cut.direction == direction else { return nil }
            guard cut.left < count else {
                cut.left -= count
                state.cut = cut
                return nil
            }
            state.cut = nil
            state.cuts += 1
            return cut.left
        }
    }

    private final class Pipe: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let other: any Channel
        private let passed: @Sendable (Int) -> Int?

        init(to other: any Channel, passed: @escaping @Sendable (Int) -> Int?) {
            (self.other, self.passed) = (other, passed)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var bytes = unwrapInboundIn(data)
            guard let count = passed(bytes.readableBytes) else { return other.writeAndFlush(bytes, promise: nil) }
            let channel = context.channel
            let written = other.eventLoop.makePromise(of: Void.self)
            written.futureResult.whenComplete { [other] _ in
                other.close(promise: nil)
                channel.close(promise: nil)
            }
            other.writeAndFlush(bytes.readSlice(length: count) ?? ByteBuffer(), promise: written)
        }

        func channelInactive(context: ChannelHandlerContext) { other.close(promise: nil) }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
