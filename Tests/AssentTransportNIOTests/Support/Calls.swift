import AssentCore
import AssentTesting
import AssentTransportNIO
import HTTPTypes
import Testing

extension HTTPLimits {
    /// What a test does not set is so long that no busy machine reaches it.
    static func patient(
        connect: Duration = .seconds(3600), read: Duration = .seconds(3600), total: Duration? = .seconds(3600),
        replyBytes: Int = 4 << 20
    ) -> HTTPLimits {
        HTTPLimits(connect: connect, read: read, total: total, replyBytes: replyBytes)
    }
}

extension HTTPCall {
    static func to(
        _ port: Int, host: String = "localhost", scheme: String = "https", method: HTTPRequest.Method = .get,
        path: String = "/", fields: HTTPFields = [:], body: HTTPBody? = nil, limits: HTTPLimits = .patient()
    ) -> HTTPCall {
        HTTPCall(
            HTTPRequest(
                method: method, scheme: scheme, authority: "\(host):\(port)", path: path, headerFields: fields),
            body: body, limits: limits)
    }
}

/// How long a connection without a call is kept where that is not what is tested: a busy machine may let a call wait.
private let unhurried = Duration.seconds(3600)

/// A transport that trusts `roots` at the tests' time.
func makeTransport(
    roots: [TestPKI.Authority], pins: [String: PinRequirement],
    configure: (inout NIOTransportConfiguration) -> Void = { _ in }
) throws -> NIOTransport {
    var configuration = NIOTransportConfiguration(trustRoots: .certificates(roots.map(\.der)), pins: pins)
    configuration.idleTimeout = unhurried
    configure(&configuration)
    return try NIOTransport(configuration: configuration, clock: ManualClock(TestPKI.now))
}

/// A transport for plaintext to this machine.
func makePlaintextTransport(
    configure: (inout NIOTransportConfiguration) -> Void = { _ in }
) throws -> NIOTransport {
    var configuration = NIOTransportConfiguration(trustRoots: .system, pins: [:], allowPlaintextLoopback: true)
    configuration.idleTimeout = unhurried
    configure(&configuration)
    return try NIOTransport(configuration: configuration)
}

extension NIOTransport {
    /// The content of the reply to a GET.
    func text(_ call: HTTPCall) async throws -> String {
        String(decoding: try await send(call).body.collect(upTo: 1 << 20), as: UTF8.self)
    }

    /// The error of a call, its reading included.
    func failure(_ call: HTTPCall, sourceLocation: SourceLocation = #_sourceLocation) async -> HTTPTransportError? {
        do {
            let reply = try await send(call)
            _ = try await reply.body.collect(upTo: 1 << 24)
            Issue.record("the call went through with \(reply.status)", sourceLocation: sourceLocation)
            return nil
        } catch let error as HTTPTransportError {
            return error
        } catch {
            Issue.record("not a transport error: \(error)", sourceLocation: sourceLocation)
            return nil
        }
    }
}
