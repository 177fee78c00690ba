import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1

/// A connection whose requests a ``RequestWatch`` holds to the rules, and that can become a tunnel.
struct WatchedConnection<Base: ServerChildChannel>: ServerChildChannel {
    let base: Base
    let limits: BodyLimits

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
        base.setup(channel: channel, logger: logger).flatMapThrowing { [limits] value in
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(RequestWatch(limits), position: .after(decoder))
            let encoder = try pipeline.handler(type: HTTPResponseEncoder.self)
            try pipeline.addHandler(TunnelSwitch(), position: .before(encoder))
            return value
        }
    }

    func handle(value: Base.Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}

extension RequestBody {
    /// The same body; `channel` hears of it when somebody begins to read.
    func asking(_ channel: any Channel) -> RequestBody {
        RequestBody(asyncSequence: AskedForBody(base: self, channel: channel))
    }
}

private struct AskedForBody: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    let base: RequestBody
    let channel: any Channel

    func makeAsyncIterator() -> Iterator { Iterator(base: base.makeAsyncIterator(), channel: channel) }

    struct Iterator: AsyncIteratorProtocol {
        var base: RequestBody.AsyncIterator
        var channel: (any Channel)?

        mutating func next(isolation actor: isolated (any Actor)?) async throws -> ByteBuffer? {
            channel?.triggerUserOutboundEvent(BodyWanted(), promise: nil)
            channel = nil
            return try await base.next(isolation: actor)
        }
    }
}
