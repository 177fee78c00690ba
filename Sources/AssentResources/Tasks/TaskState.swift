extension NetworkTask {
    /// Where a task is. The table of what changes it is in `docs/resources.md`.
    public enum State: String, Sendable, CaseIterable {
        /// It is on its way.
        case running
        /// It stands still until it is resumed.
        case suspended
        /// It was cancelled; what comes is not told.
        case cancelled
        /// It has ended, well or not.
        case completed

        /// What an app asks of a task.
        enum Event: String, CaseIterable {
            case suspend, resume, cancel
        }

        /// The state after an event; `nil` when the event changes nothing.
        func after(_ event: Event) -> State? {
            switch (self, event) {
            case (.running, .suspend): .suspended
            case (.suspended, .resume): .running
            case (.running, .cancel), (.suspended, .cancel): .cancelled
            default: nil
            }
        }
    }
}
