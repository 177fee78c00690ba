import Hummingbird
import Logging
import NIOCore
import Testing

/// Runs a service on a free port of 127.0.0.1 beside `body`, which is told the port, and ends it.
func withLoopbackService<Responder: HTTPResponder>(
    _ responder: Responder, _ body: (Int) async throws -> Void
) async throws where Responder.Context: InitializableFromSource<ApplicationRequestContextSource> {
    let (ports, listening) = AsyncStream.makeStream(of: Int.self)
    let application = Application(
        responder: responder, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
        onServerRunning: { channel in
            listening.yield(channel.localAddress?.port ?? 0)
            listening.finish()
        },
        logger: Logger(label: "service", factory: { _ in SwiftLogNoOpLogHandler() }))
    let running = Task {
        defer { listening.finish() }
        try await application.run()
    }
    defer { running.cancel() }
    var port: Int?
    for await number in ports { port = number }
    let listened = try #require(port, "the service has not begun to listen")
    try await body(listened)
}
