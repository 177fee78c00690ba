import AssentCore
import Hummingbird
import NIOCore

/// How far a request's content has come on its way through the gateway.
struct StreamedContent: Sendable {
    /// What was wrong with what the client sent.
    var fault: RequestError?

    /// Whether all of it was read, so that nothing reads on for the service.
    var isWhole = false
}

extension HTTPBody {
    /// A request's content on its way through the gateway, read piece by piece as the service takes it, once. `state`
    /// hears how far it has come.
    init(streaming body: RequestBody, length: Int?, state: Locked<StreamedContent>) {
        self.init(length: length, isReplayable: false) {
            let reader = Reader(body.makeAsyncIterator(), length: length, state: state)
            return { try await reader.next() }
        }
    }

    private actor Reader {
        private var iterator: RequestBody.AsyncIterator
        private var missing: Int?
        private let state: Locked<StreamedContent>

        init(_ iterator: sending RequestBody.AsyncIterator, length: Int?, state: Locked<StreamedContent>) {
            self.iterator = iterator
            missing = length
            self.state = state
        }

        func next() async throws -> [UInt8]? {
            // Who waits here for the end when the service has answered already is cancelled, and with that wait the
            // whole connection stops being read: the client's next request would hang.
            if missing == 0 { return nil }
            var current = iterator
            defer { iterator = current }
            let buffer: ByteBuffer?
            do {
                buffer = try await current.next(isolation: self)
            } catch {
                if !(error is CancellationError) {
                    let fault = RequestError(reading: error)
                    state.withLock { $0.fault = fault }
                }
                throw error
            }
            guard let buffer else {
                // What was cancelled ends as well, wherever it is.
                if missing == nil, !Task.isCancelled { state.withLock { $0.isWhole = true } }
                return nil
            }
            missing = missing.map { Swift.max(0, $0 - buffer.readableBytes) }
            if missing == 0 { state.withLock { $0.isWhole = true } }
            return Array(buffer: buffer)
        }
    }
}

extension ResponseBody {
    /// A service's content on its way to the client: in one piece with the header when it is there already.
    init(_ body: HTTPBody) {
        if let bytes = body.inMemory {
            self.init(byteBuffer: ByteBuffer(bytes: bytes))
        } else {
            // Its length is said for one that is sealed. A short one is sent on as it comes all the same.
            let length = body.length.flatMap { $0 > SealedReply.wholeLimit ? $0 : nil }
            self.init(contentLength: length) { writer in
                // It seals bytes from where they lie: a buffer of their own would be one more copy of all of them.
                if var sealing = writer as? SealingWriter {
                    for try await chunk in body { try await sealing.write(bytes: chunk) }
                    return try await sealing.finish(nil)
                }
                for try await chunk in body { try await writer.write(ByteBuffer(bytes: chunk)) }
                try await writer.finish(nil)
            }
        }
    }
}
