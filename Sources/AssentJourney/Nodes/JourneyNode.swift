public import AssentCore

/// What came of starting a journey or of answering a step.
public enum JourneyNode: Sendable {
    /// The server wants to know more.
    case `continue`(JourneyStep)
    /// The journey is done. The token is empty when the journey was to make no session.
    case success(Session)
    /// The server said no.
    case error(JourneyError)
    /// There is no answer that means anything: the network, an unreadable reply, a cancelled task.
    case failure(JourneyFailure)
}
