/// A request's or a reply's content: bytes in memory, or a stream that is pulled chunk by chunk.
///
/// A consumer that stops pulling stops the producer (back-pressure). A body made of bytes can be read again, so a
/// request that carries it can be repeated; a stream can be read once unless it says that it is replayable.
public struct HTTPBody: Sendable, AsyncSequence {
    /// A chunk.
    public typealias Element = [UInt8]

    /// The number of bytes when it is known beforehand, else `nil`.
    public let length: Int?

    /// Whether each new iteration starts again from the first byte.
    public let isReplayable: Bool

    /// The whole content, when it is in memory.
    public let inMemory: [UInt8]?

    /// Whether it is a reply's: its request was sent, so that what fails here may come after an effect.
    var isOfReply = false

    private let makeNext: @Sendable () -> @Sendable () async throws -> [UInt8]?

    /// A body in memory.
    public init(_ bytes: [UInt8]) {
        length = bytes.count
        isReplayable = true
        inMemory = bytes
        makeNext = {
            let rest = Locked<[UInt8]?>(bytes.isEmpty ? nil : bytes)
            return {
                rest.withLock {
                    let chunk = $0; $0 = nil; return chunk
                }
            }
        }
    }

    /// A body in memory, from text as UTF-8.
    public init(_ text: String) {
        self.init(Array(text.utf8))
    }

    /// A body that is pulled.
    ///
    /// - Parameters:
    ///   - length: the number of bytes if known; sent as `Content-Length`, otherwise the body is chunked.
    ///   - isReplayable: whether `makeNext` may be called again and then starts over.
    ///   - makeNext: called once for each iteration; the function that it returns gives the next chunk, or `nil` at the
    ///     end.
    public init(
        length: Int?, isReplayable: Bool, makeNext: @escaping @Sendable () -> @Sendable () async throws -> [UInt8]?
    ) {
        self.length = length
        self.isReplayable = isReplayable
        self.inMemory = nil
        self.makeNext = makeNext
    }

    /// A body without bytes.
    public static let empty = HTTPBody([UInt8]())

    /// Starts reading.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(pull: makeNext())
    }

    /// Starts reading, for a body that is made of others: what is returned may be kept.
    package func reading() -> @Sendable () async throws -> [UInt8]? { makeNext() }

    /// Reads everything.
    ///
    /// - Throws: ``HTTPTransportError`` with code `bodyTooLarge` once more than `limit` bytes have come; nothing beyond
    ///   is read. For a reply's content it says that the request may have had an effect.
    public func collect(upTo limit: Int) async throws -> [UInt8] {
        if let length, length > limit { throw tooLarge(limit) }
        if let inMemory { return inMemory }
        var all: [UInt8] = []
        for try await chunk in self {
            guard chunk.count <= limit - all.count else { throw tooLarge(limit) }
            all += chunk
        }
        return all
    }

    private func tooLarge(_ limit: Int) -> HTTPTransportError {
        let error = HTTPTransportError(.bodyTooLarge, "The content has more than \(limit) bytes.")
        return isOfReply ? error.afterSending() : error
    }

    /// Pulls the chunks of one reading.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let pull: @Sendable () async throws -> [UInt8]?

        /// The next chunk, or `nil` at the end.
        public mutating func next() async throws -> [UInt8]? {
            try await pull()
        }
    }
}
