import AssentCore
import HummingbirdCore
import Logging
import NIOCore

/// The connections that are open, each with the task that serves it.
final class OpenConnections: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var isDraining = false
        var isCut = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Locked(State())

    /// Whether replies must say that they are the last on their connection.
    var isDraining: Bool { state.withLock { $0.isDraining } }

    /// From now on each reply ends its connection.
    func drain() {
        state.withLock { $0.isDraining = true }
    }

    /// Serves a connection in a task of its own, which nothing cancels: it ends when the connection does.
    func serve(_ channel: any Channel, _ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        let isCut = state.withLock { state in
            state.channels[ObjectIdentifier(channel)] = channel
            return state.isCut
        }
        if isCut { channel.close(promise: nil) }
        return Task {
            await work()
            finished(channel)
        }
    }

    /// Closes all connections, and those that are still being accepted as soon as they are. Returns how many it has
    /// closed.
    func cut() -> Int {
        let channels = state.withLock { state in
            defer { (state.isDraining, state.isCut) = (true, true) }
            return state.isCut ? [:] : state.channels
        }
        for channel in channels.values { channel.close(promise: nil) }
        return channels.count
    }

    /// Waits until the last task has ended.
    func waitUntilServed() async {
        await withCheckedContinuation { continuation in
            let isEmpty = state.withLock { state in
                if !state.channels.isEmpty { state.waiting.append(continuation) }
                return state.channels.isEmpty
            }
            if isEmpty { continuation.resume() }
        }
    }

    private func finished(_ channel: any Channel) {
        let waiting = state.withLock { state in
            state.channels[ObjectIdentifier(channel)] = nil
            guard state.channels.isEmpty else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}

/// Hands each connection to its task as soon as it is set up.
///
/// Hummingbird's server takes connections from a sequence. One that is accepted while the sequence ends is dropped
/// there, and when a `NIOAsyncChannel` is dropped NIO ends the process: "Deinited NIOAsyncWriter without calling
/// finish()" (swift-nio #2637, #2813). Here the sequence holds only a reference; the task owns the connection and
/// finishes it in any case.
struct OwnedConnection<Base: ServerChildChannel>: ServerChildChannel {
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let serving: Task<Void, Never>
    }

    let base: Base
    let connections: OpenConnections

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        base.setup(channel: channel, logger: logger).map { value in
            let serving = connections.serve(channel) { await base.handle(value: value, logger: logger) }
            return Value(channel: channel, serving: serving)
        }
    }

    func handle(value: Value, logger: Logger) async {
        await withTaskCancellationHandler {
            await value.serving.value
        } onCancel: {
            value.channel.close(promise: nil)
        }
    }
}

/// Gives the requests that cross a stop on the network a moment to arrive: Hummingbird, told to quiesce, closes idle
/// connections at once.
final class QuiesceDelay: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = Any

    private let delay: TimeAmount
    private var scheduled: Scheduled<Void>?

    init(_ delay: TimeAmount) { self.delay = delay }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ChannelShouldQuiesceEvent else { return context.fireUserInboundEventTriggered(event) }
        guard scheduled == nil else { return }
        scheduled = context.eventLoop.assumeIsolated().scheduleTask(in: delay) {
            context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { scheduled?.cancel() }
}
