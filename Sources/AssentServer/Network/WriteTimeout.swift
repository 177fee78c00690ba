import NIOCore

/// Closes a connection whose client does not take what it is sent: Hummingbird's idle timeout does not count while a
/// reply is being written, so such a client would keep connection, reply and, at the gateway, the service's connection
/// for ever.
final class WriteTimeout: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = Any

    private let limit: TimeAmount
    private var scheduled: Scheduled<Void>?

    /// - Parameter limit: how long nothing may go out that is waiting to.
    init(_ limit: TimeAmount) { self.limit = limit }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        scheduled?.cancel()
        scheduled = nil
        if !context.channel.isWritable {
            scheduled = context.eventLoop.assumeIsolated().scheduleTask(in: limit) {
                context.close(promise: nil)
            }
        }
        context.fireChannelWritabilityChanged()
    }

    func handlerRemoved(context: ChannelHandlerContext) { scheduled?.cancel() }
}
