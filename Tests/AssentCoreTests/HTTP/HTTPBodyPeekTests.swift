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

    @Test("A short one is in memory afterwards, up to the very limit")
    func short() async throws {
        for chunks: [[UInt8]] in [[], [[1, 2, 3]], [[1], [], [2, 3]]] {
            var (body, _) = body(chunks)
            let whole = Array(chunks.joined())
            #expect(try await body.peek(upTo: 3) == whole)
            #expect(body.inMemory == whole && body.isReplayable)
        }
    }

    @Test("A longer one begins with what was read, goes on as it comes, and keeps its length")
    func long() async throws {
        let chunks: [[UInt8]] = [[1, 2], [], [3, 4], [5], [6]]
        var (body, pulled) = body(chunks)
        #expect(try await body.peek(upTo: 3) == nil)
        #expect(pulled.withLock { $0 } == 3)
        var come: [[UInt8]] = []
        for try await chunk in body { come.append(chunk) }
        #expect(come == chunks)
    }

    @Test("One that says that it is longer is not read")
    func announced() async throws {
        var (body, pulled) = body([[1, 2], [3, 4]], length: 4)
        #expect(try await body.peek(upTo: 3) == nil)
        #expect(pulled.withLock { $0 } == 0 && body.length == 4)
        #expect(try await body.collect(upTo: 4) == [1, 2, 3, 4])
        var memory = HTTPBody([1, 2, 3, 4])
        #expect(try await memory.peek(upTo: 3) == nil)
        #expect(memory.inMemory == [1, 2, 3, 4])
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
        var early = broken(after: 1)
        await #expect(throws: HTTPTransportError.self) { try await early.peek(upTo: 3) }
        var late = broken(after: 2)
        #expect(try await late.peek(upTo: 3) == nil)
        await #expect(throws: HTTPTransportError.self) { [late] in try await late.collect(upTo: 100) }
    }
}
