import AssentCore
import HTTPTypes
import Logging

extension AuthorizationPolicy {
    private static let recognitionTime: Duration = .seconds(10)

    /// What ``recognise`` makes of a reply, whose content is then in memory or as it was.
    ///
    /// - Throws: what reading the content throws, and `CancellationError`.
    func recognised(in reply: inout HTTPReply, clock: any WallClock, logger: Logger) async throws -> Advice? {
        guard let recognise else { return nil }
        let type = MediaType.normalised(reply.response.headerFields[.contentType] ?? "")
        guard !type.hasPrefix("text/event-stream"), try await reply.body.peek(upTo: bufferLimit) != nil else {
            return nil
        }
        let shown = reply
        do {
            return try await TimeLimit.run(until: clock.time(after: Self.recognitionTime), clock: clock) {
                try await recognise(shown)
            }
        } catch {
            try Task.checkCancellation()
            let reason = error is TimeLimit.Passed ? "it took too long" : "it failed"
            logger.warning("an app's code recognised no advice", metadata: ["reason": "\(reason)"])
            return nil
        }
    }
}
