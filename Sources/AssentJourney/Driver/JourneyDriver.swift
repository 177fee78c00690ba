public import AssentCore
import Foundation

extension JourneyClient {
    /// Walks a journey to its end: calls `handler` with each step, in the caller's isolation, and sends what it
    /// answered.
    ///
    /// Where the server did not accept an answer, the next step says so (``JourneyStep/refusal``). The same answers are
    /// sent to the same question only so often (``JourneyLimits/sameAnswers``), and the number of steps is bounded.
    /// Where a step asks to wait, the handler sees it and returns ``StepAction/next``; the wait is done here.
    /// - Returns: the session; its token is empty when `options` asked for none.
    /// - Throws: ``JourneyError`` when the server refuses, ``JourneyFailure`` (also when something has no answer, the
    ///   user declines or the journey goes on by e-mail), `CancellationError`, and what `handler` throws.
    public func run(
        _ tree: String? = nil, options: JourneyOptions = JourneyOptions(), session: Session? = nil,
        handler: (inout JourneyStep) async throws -> StepAction
    ) async throws -> Session {
        try await run(from: start(tree, options: options, session: session), handler: handler)
    }

    /// Walks the journey that an advice asks for. See ``run(_:options:session:handler:)``.
    public func run(
        advice: Advice, options: JourneyOptions = JourneyOptions(), session: Session?,
        handler: (inout JourneyStep) async throws -> StepAction
    ) async throws -> Session {
        try await run(from: start(advice: advice, options: options, session: session), handler: handler)
    }

    /// Walks on from a node. See ``run(_:options:session:handler:)``.
    public func run(
        from node: JourneyNode, handler: (inout JourneyStep) async throws -> StepAction
    ) async throws -> Session {
        var node = node
        var run = JourneyRun(limits: configuration.limits)
        while true {
            switch node {
            // Also where the task was cancelled: the server may have ended the session before for this one.
            case .success(let session): return session
            case .error(let error): throw error
            case .failure(let failure):
                if failure.code == .cancelled { throw CancellationError() }
                throw failure
            case .continue(var step):
                try Task.checkCancellation()
                let action = try await handler(&step)
                switch run.move(step, action) {
                case .send(let step): node = await next(step)
                case .wait(let seconds, let step):
                    try await clock.sleep(until: clock.now.addingTimeInterval(seconds))
                    node = await next(step)
                case .sendDecline(let step):
                    _ = await next(step)
                    throw JourneyRun.declined
                case .stop(let failure): throw failure
                }
            }
        }
    }
}
