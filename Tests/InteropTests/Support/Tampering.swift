import AssentCore
import AssentPeers
import HTTPTypes

/// A transport on which a test can lean: it keeps what was sent, and changes what comes back.
struct Tampering: HTTPTransport {
    typealias Change = @Sendable (HTTPCall, HTTPReply, _ base: any HTTPTransport) async throws -> HTTPReply

    let base: any HTTPTransport
    let change: Change
    private let calls = Locked<[HTTPCall]>([])

    init(_ base: any HTTPTransport, change: @escaping Change = { _, reply, _ in reply }) {
        self.base = base
        self.change = change
    }

    /// The URLs, each with its method, in the order in which they were sent.
    var sent: [String] {
        calls.withLock { $0.map { "\($0.request.method) \($0.request.path ?? "")" } }
    }

    /// The calls to URLs whose path ends so, in the order in which they were sent.
    func calls(to end: String) -> [HTTPCall] { calls.withLock { $0.filter { $0.isTo(end) } } }

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        calls.withLock { $0.append(call) }
        return try await change(call, try await base.send(call), base)
    }
}

extension HTTPCall {
    /// Whether the path without its query ends so.
    func isTo(_ end: String) -> Bool { URLText.withoutQuery(request.path ?? "").hasSuffix(end) }
}

extension HTTPReply {
    /// The same with another `Location`.
    func redirecting(_ change: (String) -> String) -> HTTPReply {
        var reply = self
        reply.response.headerFields[.location] = reply.response.headerFields[.location].map(change)
        return reply
    }
}
