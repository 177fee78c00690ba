import AssentCore
import Foundation

/// Reads an `InputStream`, which may block, on a thread that nobody else waits for.
struct StreamReader: Sendable {
    private let stream = Locked<InputStream?>(nil)
    private let queue = DispatchQueue(label: "assent.urlsession.body")
    private let limit: Int

    init(_ stream: InputStream, limit: Int) {
        self.limit = limit
        self.stream.withLock { $0 = stream }
    }

    /// The whole content.
    ///
    /// - Throws: ``URLProtocolError`` with code `bodyTooLarge` or `bodyFailed`.
    func bytes() async throws -> [UInt8] {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [stream, limit] in
                continuation.resume(with: stream.withLock { Self.read($0, limit) })
            }
        }
    }

    private static func read(_ stream: InputStream?, _ limit: Int) -> Result<[UInt8], any Error> {
        guard let stream else { return .success([]) }
        stream.open()
        defer { stream.close() }
        var all: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = stream.read(&chunk, maxLength: chunk.count)
            guard count > 0 else {
                guard count == 0 else {
                    return .failure(
                        URLProtocolError(.bodyFailed, "The request's stream cannot be read. Nothing was sent."))
                }
                return .success(all)
            }
            guard count <= limit - all.count else { return .failure(URLProtocolError.tooLarge(limit)) }
            all += chunk[..<count]
        }
    }
}
