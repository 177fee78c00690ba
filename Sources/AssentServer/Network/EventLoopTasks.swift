import HummingbirdCore
import HummingbirdTLS
import Logging
import NIOCore
import NIOSSL

/// Runs tasks on an event loop.
final class EventLoopExecutor: TaskExecutor {
    private let eventLoop: any EventLoop

    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// A connection whose requests are answered on its own event loop: between reading a request and writing its reply
/// nothing is handed to another thread and back. What takes long (password hashes, writes to the database) has threads
/// of its own.
struct EventLoopConnection<Base: ServerChildChannel>: ServerChildChannel {
    let base: Base

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
        base.setup(channel: channel, logger: logger)
    }

    func handle(value: Base.Value, logger: Logger) async {
        await withTaskExecutorPreference(EventLoopExecutor(value.channel.eventLoop)) {
            await base.handle(value: value, logger: logger)
        }
    }
}

extension HTTPServerBuilder {
    /// HTTP/1.1 over TLS, each connection's requests answered on its event loop.
    static func onEventLoops(
        _ configuration: HTTP1Channel.Configuration, bodies: BodyLimits, tls: TLSConfiguration,
        connections: OpenConnections
    ) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            let plain = WatchedConnection(
                base: HTTP1Channel(responder: responder, configuration: configuration), limits: bodies)
            return OwnedConnection(
                base: EventLoopConnection(base: try TLSChannel(plain, tlsConfiguration: tls)), connections: connections)
        }
    }
}
