/// A stored page of a journey, which is answered once.
struct StoredStep: Sendable {
    /// The step's id.
    let id: String

    /// When its journey expires, in seconds since 1970.
    let expiresAt: Int64

    /// Whether it waits.
    let status: Status

    /// Whether a step waits for its answer.
    enum Status: Sendable {
        /// It waits; its ``JourneyState`` is sealed.
        case pending(sealedState: [UInt8])
        /// It was answered.
        case answered(Answered)
    }

    /// How a step was answered.
    struct Answered: Sendable {
        /// What the answer is recognised by.
        let digest: String

        /// How long ago, in seconds, by the clock that all nodes share; negative when that was set back since.
        let age: Int64

        /// The ``StoredReply``, sealed; empty when nobody gets it again.
        let sealedReply: [UInt8]
    }
}

/// The right to answer a step.
struct StepClaim: Sendable, Hashable {
    /// The step's id.
    let stepID: String

    /// What the claim is recognised by.
    let value: String
}
