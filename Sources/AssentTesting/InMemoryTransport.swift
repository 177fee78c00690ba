public import AssentCore
public import HTTPTypes

/// A transport that answers from a function and remembers what it was asked.
public final class InMemoryTransport: HTTPTransport {
    /// One request as it arrived, its content read.
    public struct Exchange: Sendable {
        /// Method, URL and header fields.
        public let request: HTTPRequest
        /// The content.
        public let body: [UInt8]

        /// The content as text.
        public var text: String { String(decoding: body, as: UTF8.self) }
    }

    private let answer: @Sendable (Exchange) async throws -> HTTPReply
    private let log = Locked<[Exchange]>([])

    /// A transport whose replies `answer` gives.
    public init(_ answer: @escaping @Sendable (Exchange) async throws -> HTTPReply) {
        self.answer = answer
    }

    /// Everything that was asked, in order.
    public var exchanges: [Exchange] { log.withLock { $0 } }

    /// Reads the request's body, remembers it and answers.
    @concurrent public func send(_ call: HTTPCall) async throws -> HTTPReply {
        let body = try await call.body?.collect(upTo: 64 << 20) ?? []
        let exchange = Exchange(request: call.request, body: body)
        log.withLock { $0.append(exchange) }
        return try await answer(exchange)
    }
}

extension HTTPReply {
    /// A JSON reply, for fakes.
    public static func json(_ status: Int, _ value: JSONValue, headers: HTTPFields = [:]) -> HTTPReply {
        var headers = headers
        headers[.contentType] = "application/json"
        return HTTPReply(
            HTTPResponse(status: .init(code: status), headerFields: headers), body: HTTPBody(value.serializedBytes()))
    }
}
