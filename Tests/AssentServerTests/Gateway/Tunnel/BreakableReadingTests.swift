import AssentCore
import TestSupport
import Testing

@testable import AssentServer

@Suite("A reading that can be broken off")
struct BreakableReadingTests {
    /// A body that gives these pieces, and then waits until its task is cancelled.
    private static func body(_ pieces: [String], waiting: Watched<Bool>) -> HTTPBody {
        let rest = Locked(pieces.map { Array($0.utf8) })
        return HTTPBody(length: nil, isReplayable: false) {
            {
                if let next = rest.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return next }
                waiting.update { $0 = true }
                await Watched(false).wait { $0 }
                throw CancellationError()
            }
        }
    }

    @Test("Pieces come in their order, and who waits for the next one waits no longer once it is broken off")
    func whileWaiting() async throws {
        let waiting = Watched(false)
        let reading = BreakableReading(Self.body(["a", "b"], waiting: waiting))
        #expect(try await reading.next() == Array("a".utf8))
        #expect(try await reading.next() == Array("b".utf8))
        let last = Task { try await reading.next() }
        await waiting.wait { $0 }
        reading.breakOff()
        await #expect(throws: CancellationError.self) { try await last.value }
    }

    @Test("After it was broken off nothing is read, not even what is there")
    func afterwards() async throws {
        let reading = BreakableReading(Self.body(["a", "b"], waiting: Watched(false)))
        #expect(try await reading.next() == Array("a".utf8))
        reading.breakOff()
        reading.breakOff()
        await #expect(throws: CancellationError.self) { try await reading.next() }
    }

    @Test("An end is an end, and an error of the service's connection comes as it is")
    func ends() async throws {
        let whole = BreakableReading(HTTPBody("x"))
        #expect(try await whole.next() == Array("x".utf8))
        #expect(try await whole.next() == nil)
        let broken = BreakableReading(
            HTTPBody(length: nil, isReplayable: false) {
                { throw HTTPTransportError(.bodyFailed, "The connection ended.") }
            })
        await #expect(throws: HTTPTransportError.self) { try await broken.next() }
    }
}
