import AssentCore
import TestSupport
import Testing

@Suite("What tests try again because a machine may be busy")
struct RetryTests {
    private struct Busy: Error {}

    private let tries = Locked(0)

    /// Fails so many times.
    private func attempt(failing times: Int) throws -> Int {
        let count = tries.withLock { tries in
            tries += 1
            return tries
        }
        if count <= times { throw Busy() }
        return count
    }

    @Test("It is tried until it succeeds, twenty times however late it is")
    func succeeds() async throws {
        let count = try await Patience.retry("it succeeds", for: .zero) { try attempt(failing: 19) }
        #expect(count == 20)
    }

    @Test("What fails each time ends with what was tried and the last error")
    func exhausted() async {
        let error = await #expect(throws: Patience.Exhausted.self) {
            try await Patience.retry("it succeeds", for: .zero) { try attempt(failing: .max) }
        }
        #expect(error?.description == "it succeeds: not after 20 tries, and at last: Busy()")
        #expect(tries.withLock { $0 } == 20)
    }

    @Test("An error of another kind ends it at once")
    func decided() async {
        await #expect(throws: Busy.self) {
            try await Patience.retry("it succeeds") {
                try attempt(failing: .max)
            } unless: {
                $0 is Busy
            }
        }
        #expect(tries.withLock { $0 } == 1)
    }

    @Test("What never becomes so ends with what was waited for")
    func waiting() async throws {
        try await Patience.wait(until: "it is so", for: .zero) {
            tries.withLock { tries in
                tries += 1
                return tries == 7
            }
        }
        #expect(tries.withLock { $0 } == 7)
        let error = await #expect(throws: Patience.Exhausted.self) {
            try await Patience.wait(until: "it is so", for: .zero) { false }
        }
        #expect(error?.description == "it is so: not after 20 tries, and at last: it is not so")
    }
}
