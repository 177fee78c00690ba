import AssentCore
import Hummingbird
import NIOCore

extension HTTPBody {
    /// A request's content on its way through the gateway, read piece by piece as the service takes it, once.
    init(streaming body: RequestBody, length: Int?) {
        self.init(length: length, isReplayable: false) {
            let reader = Reader(body.makeAsyncIterator())
            return { try await reader.next() }
        }
    }

    private actor Reader {
        private var iterator: RequestBody.AsyncIterator

        init(_ iterator: sending RequestBody.AsyncIterator) {
            self.iterator = iterator
        }

        func next() async throws -> [UInt8]? {
            var current = iterator
            defer { iterator = current }
            return try await current.next(isolation: self).map { Array(buffer: $0) }
        }
    }
}

extension ResponseBody {
    /// A service's content on its way to the client: in one piece with the header when it is there already.
    init(_ body: HTTPBody) {
        if let bytes = body.inMemory {
            self.init(byteBuffer: ByteBuffer(bytes: bytes))
        } else {
            self.init { writer in
                for try await chunk in body { try await writer.write(ByteBuffer(bytes: chunk)) }
                try await writer.finish(nil)
            }
        }
    }
}
