import AssentCore
import Testing

@Suite("A body that is looked at first")
struct HTTPBodyPeekTests {
    /// A body of chunks, with how many were pulled.
    private func body(_ chunks: [[UInt8]], length: Int? = nil) -> (HTTPBody, Locked<Int>) {
        let pulled = Locked(0)
        let body = HTTPBody(length: length, isReplayable: false) {
            let left = Locked(chunks[...])
            return {
                pulled.withLock { $0 += 1 }
                return left.withLock { $0.popFirst() }
            }
        }
        return (body, pulled)
    }

    /// What the look has found, and the body afterwards.
    private func peeked(_ body: HTTPBody, upTo limit: Int) async throws -> (bytes: [UInt8]?, body: HTTPBody) {
        var body = body
        let bytes = try await body.peek(upTo: limit)
        return (bytes, body)
    }

    @Test("A short one is in memory afterwards, up to the very limit")
    func short() async throws {
        for chunks: [[UInt8]] in [[], [[1, 2, 3]], [[1], [], [2, 3]]] {
            let whole = Array(chunks.joined())
            let found = try await peeked(body(chunks).0, upTo: 3)
            #expect(found.bytes == whole && found.body.inMemory == whole && found.body.isReplayable)
        }
    }

    @Test("A longer one begins with what was read, goes on as it comes, and keeps its length")
    func long() async throws {
        let chunks: [[UInt8]] = [[1, 2], [], [3, 4], [5], [6]]
        let (body, pulled) = body(chunks)
        let found = try await peeked(body, upTo: 3)
        #expect(found.bytes == nil && pulled.withLock { $0 } == 3)
        var come: [[UInt8]] = []
        for try await chunk in found.body { come.append(chunk) }
        #expect(come == chunks)
    }

    @Test("One that says that it is longer is not read")
    func announced() async throws {
        let (body, pulled) = body([[1, 2], [3, 4]], length: 4)
        let found = try await peeked(body, upTo: 3)
        #expect(found.bytes == nil && pulled.withLock { $0 } == 0 && found.body.length == 4)
        #expect(try await found.body.collect(upTo: 4) == [1, 2, 3, 4])
        let memory = try await peeked(HTTPBody([1, 2, 3, 4]), upTo: 3)
        #expect(memory.bytes == nil && memory.body.inMemory == [1, 2, 3, 4])
    }

    @Test("An error on the way is thrown by the look, or by the reading that comes to it")
    func broken() async throws {
        func broken(after count: Int) -> HTTPBody {
            HTTPBody(length: nil, isReplayable: false) {
                let left = Locked(count)
                return {
                    let isLeft = left.withLock { left in
                        left -= 1
                        return left >= 0
                    }
                    guard isLeft else { throw HTTPTransportError(.connectionClosed, "x") }
                    return [1, 2]
                }
            }
        }
        await #expect(throws: HTTPTransportError.self) { try await peeked(broken(after: 1), upTo: 3) }
        let late = try await peeked(broken(after: 2), upTo: 3)
        #expect(late.bytes == nil)
        await #expect(throws: HTTPTransportError.self) { try await late.body.collect(upTo: 100) }
    }
}
