import AssentCore
import HummingbirdCore
import Logging
import NIOCore

/// The connections that are open, each with the task that serves it, and how many there may be.
final class OpenConnections: Sendable {
    private struct Connection {
        let channel: any Channel
        let served: Eventually<Void>
    }

    private struct State {
        var open: [ObjectIdentifier: Connection] = [:]
        var count: ConnectionCount
        var isDraining = false
        var isCut = false
        var isAbandoned = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Locked<State>
    private let proxies: TrustedProxies
    private let logger: Logger

    init(_ limits: ConnectionLimits, proxies: TrustedProxies = TrustedProxies(), logger: Logger) {
        state = Locked(State(count: ConnectionCount(limits)))
        self.proxies = proxies
        self.logger = logger
    }

    /// Whether replies must say that they are the last on their connection.
    var isDraining: Bool { state.withLock { $0.isDraining } }

    /// From now on each reply ends its connection.
    func drain() {
        state.withLock { $0.isDraining = true }
    }

    /// Serves a connection in a task of its own, which nothing cancels: it ends when the connection does. One too many
    /// is closed at once: it must not even wait, since what it waits with is what runs out.
    ///
    /// Returns what comes when that is over, or given up (``abandon()``).
    func serve(_ channel: any Channel, _ work: @escaping @Sendable () async -> Void) -> Eventually<Void> {
        let address = holder(of: channel)
        let served = Eventually<Void>()
        let (isCut, entry) = state.withLock { state in
            state.open[ObjectIdentifier(channel)] = Connection(channel: channel, served: served)
            return (state.isCut, state.count.enter(address))
        }
        if let notice = entry.notice {
            logger.warning("\(notice.text)", metadata: notice.metadata)
        }
        if isCut || !entry.isAdmitted { channel.close(promise: nil) }
        Task {
            await work()
            finished(channel, address: entry.isAdmitted ? .some(address) : nil)
            served.settle(.success(()))
        }
        return served
    }

    /// Whose share a connection is of. Those of a trusted proxy are many clients', and each is for itself.
    private func holder(of channel: any Channel) -> String? {
        let address = ClientAddress(channel.remoteAddress)
        return proxies.contain(address) ? "\(ObjectIdentifier(channel))" : address.limitKey
    }

    /// Closes all connections, and those that are still being accepted as soon as they are. Returns how many it has
    /// closed.
    func cut() -> Int {
        let open = state.withLock { state in
            defer { (state.isDraining, state.isCut) = (true, true) }
            return state.isCut ? [:] : state.open
        }
        for connection in open.values { connection.channel.close(promise: nil) }
        return open.count
    }

    /// Waits until the last task has ended, or until nobody waits for them any more (``abandon()``).
    func waitUntilServed() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                let isOver = state.open.isEmpty || state.isAbandoned
                if !isOver { state.waiting.append(continuation) }
                return isOver
            }
            if isOver { continuation.resume() }
        }
    }

    /// Ends the waiting for tasks that go on though their connections were cut. Returns how many there are.
    func abandon() -> Int {
        let (open, waiting) = state.withLock { state in
            defer { (state.isAbandoned, state.waiting) = (true, []) }
            return (state.open, state.waiting)
        }
        for connection in open.values { connection.served.settle(.success(())) }
        for continuation in waiting { continuation.resume() }
        return open.count
    }

    /// Forgets a connection. `address` is whose is counted no more; `nil` for one that was not counted.
    private func finished(_ channel: any Channel, address: String??) {
        let waiting = state.withLock { state in
            state.open[ObjectIdentifier(channel)] = nil
            if case .some(let address) = address { state.count.leave(address) }
            guard state.open.isEmpty else { return [CheckedContinuation<Void, Never>]() }
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
        let served: Eventually<Void>
    }

    let base: Base
    let connections: OpenConnections

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        base.setup(channel: channel, logger: logger).map { value in
            let served = connections.serve(channel) { await base.handle(value: value, logger: logger) }
            return Value(channel: channel, served: served)
        }
    }

    func handle(value: Value, logger: Logger) async {
        await withTaskCancellationHandler {
            try? await value.served.value
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
