/// How long a test waits for what comes in any case: an hour, which no machine needs, however slow it is.
///
/// Where something does not come, `Scripts/run_tests.sh` ends the run long before, and says which test waits for it.
package enum Patience {
    package static let seconds = 3600

    /// What was tried has failed each time, for as long as a test tries.
    package struct Exhausted: Error, CustomStringConvertible {
        package let description: String
    }

    /// It is not so yet.
    private struct NotYet: Error, CustomStringConvertible {
        let description = "it is not so"
    }

    /// A machine that stood still for the whole time has not had a chance before so many tries.
    private static let leastTries = 20

    /// Tries again and again what a busy machine may fail at. What fails each time is a defect, and the test says so
    /// before `Scripts/run_tests.sh` ends the run without a word about why.
    ///
    /// - Parameters:
    ///   - what: what should come of it, for the error.
    ///   - limit: for how long it is tried, and in any case twenty times.
    ///   - attempt: what is tried.
    ///   - isFinal: whether an error is not of the kind that a busy machine makes.
    /// - Returns: what the attempt that succeeded has returned.
    /// - Throws: ``Exhausted``, an error that is final, or `CancellationError`.
    package static func retry<Result>(
        _ what: String, for limit: Duration = .seconds(480), _ attempt: () async throws -> Result,
        unless isFinal: (any Error) -> Bool = { _ in false }
    ) async throws -> Result {
        let end = ContinuousClock.now + limit
        var tries = 0
        while true {
            do {
                return try await attempt()
            } catch {
                try Task.checkCancellation()
                if isFinal(error) { throw error }
                tries += 1
                guard tries < leastTries || ContinuousClock.now < end else {
                    throw Exhausted(description: "\(what): not after \(tries) tries, and at last: \(error)")
                }
            }
            await Task.yield()
        }
    }

    /// Waits until it is so, for as long as something is tried (``retry(_:for:_:unless:)``).
    ///
    /// - Throws: ``Exhausted``, what `isSo` throws, or `CancellationError`.
    package static func wait(
        until what: String, for limit: Duration = .seconds(480), _ isSo: () async throws -> Bool
    ) async throws {
        try await retry(what, for: limit) {
            guard try await isSo() else { throw NotYet() }
        } unless: {
            !($0 is NotYet)
        }
    }
}
