import AssentCore
import Hummingbird
import NIOCore

extension HTTPBody {
    /// A request's content on its way through the gateway, read piece by piece as the service takes it, once. `fault`
    /// is told when the client does not send all of it.
    init(streaming body: RequestBody, length: Int?, fault: @escaping @Sendable (RequestError) -> Void) {
        self.init(length: length, isReplayable: false) {
            let reader = Reader(body.makeAsyncIterator(), length: length, fault: fault)
            return { try await reader.next() }
        }
    }

    private actor Reader {
        private var iterator: RequestBody.AsyncIterator
        private var missing: Int?
        private let fault: @Sendable (RequestError) -> Void

        init(
            _ iterator: sending RequestBody.AsyncIterator, length: Int?,
            fault: @escaping @Sendable (RequestError) -> Void
        ) {
            self.iterator = iterator
            missing = length
            self.fault = fault
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
                if !(error is CancellationError) { fault(RequestError(reading: error)) }
                throw error
            }
            guard let buffer else { return nil }
            missing = missing.map { Swift.max(0, $0 - buffer.readableBytes) }
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
