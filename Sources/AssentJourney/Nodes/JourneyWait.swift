public import Foundation

/// What a step tells the user while it waits for something to happen elsewhere, for example on their device. Show it:
/// nobody else tells the user what to do there.
public struct JourneyWait: Hashable, Sendable {
    /// What to show, complete with the number; it can have several lines. Empty when the server says nothing.
    public let text: String

    /// The digits that the user types on the device, to draw them large; `nil` when the server sends none apart. AM
    /// never does.
    public let number: String?

    /// When it is too late, if the server says so.
    public let until: Date?

    /// A wait with what is to be shown.
    public init(text: String, number: String? = nil, until: Date? = nil) {
        self.text = text
        self.number = number
        self.until = until
    }
}

extension JourneyStep {
    /// What to show while the step waits for something to happen elsewhere; `nil` when it does not wait.
    ///
    /// Show it and return ``StepAction/next``: ``JourneyClient`` does the waiting, and calls the handler again with the
    /// same step until something has happened.
    public var waiting: JourneyWait? {
        guard let polling = self[PollingWaitCallback.self] else { return nil }
        let texts = callbacks.compactMap { $0 as? TextOutputCallback }.filter { $0.kind != .script }.map(\.message)
        let text = polling.message.isEmpty ? texts.filter { !$0.isEmpty }.joined(separator: "\n") : polling.message
        return JourneyWait(text: text, number: polling.number, until: polling.until)
    }
}
