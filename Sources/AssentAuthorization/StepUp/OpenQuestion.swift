import AssentCore

/// The question that a handler is answering, as the tasks know that it starts: what they send must not wait for the
/// end of that question, since the handler may wait for them.
final class OpenQuestion: Sendable {
    @TaskLocal private static var current: OpenQuestion?

    private let coordinator: StepUpCoordinator
    /// The question around this one, of another client.
    private let outer: OpenQuestion?
    private let isOpen = Locked(true)

    private init(_ coordinator: StepUpCoordinator, outer: OpenQuestion?) {
        (self.coordinator, self.outer) = (coordinator, outer)
    }

    /// Whether this task belongs to a handler that has not returned yet, and by whom it was called.
    static func isAsked(by coordinator: StepUpCoordinator) -> Bool {
        var question = current
        while let open = question {
            if open.coordinator === coordinator, open.isOpen.withLock({ $0 }) { return true }
            question = open.outer
        }
        return false
    }

    /// Runs a handler.
    static func whileAsking<Result>(
        _ coordinator: StepUpCoordinator, _ handler: () async throws -> Result
    ) async rethrows -> Result {
        let question = OpenQuestion(coordinator, outer: current)
        // A task that outlives the handler may ask when its turn comes.
        defer { question.isOpen.withLock { $0 = false } }
        return try await $current.withValue(question, operation: handler)
    }
}
