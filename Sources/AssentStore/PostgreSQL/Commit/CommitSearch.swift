/// How it is found out what became of a transaction whose `COMMIT` got no answer: a state machine without I/O.
///
/// A record that is visible on the primary may be missing on the standby that takes its place. So a visible record
/// alone is not a proof: a commit that begins after it was seen, and that is acknowledged, is one.
struct CommitSearch: Sendable, Hashable {
    enum Outcome: Sendable, Hashable {
        case committed
        /// Nothing of it has happened, and nothing will.
        case takenBack
        case unknown
    }

    enum Step: Sendable, Hashable {
        /// Look for what the transaction has written, on the server that is believed now.
        case look
        /// Commit something on the server where it was seen.
        case fence
        case end(Outcome)
    }

    /// What a look has found.
    enum Finding: Sendable, Hashable {
        /// The transaction still holds its locks: it is being committed, or will be taken back.
        case open
        case absent
        /// It is there. `isReplicated` says whether the server lets a commit wait for a standby.
        case present(isReplicated: Bool)
    }

    /// Whether a commit must be on a standby as well.
    let requiresStandby: Bool

    /// The first step.
    var start: Step { .look }

    /// What follows from a look.
    func found(_ finding: Finding) -> Step {
        switch finding {
        case .open: .look
        case .absent: .end(.takenBack)
        case .present(isReplicated: false) where requiresStandby: .end(.unknown)
        case .present: .fence
        }
    }

    /// What follows from a fence. Where a standby is required, one that did not wait for it is not confirmed.
    func fenced(isConfirmed: Bool) -> Step { .end(isConfirmed ? .committed : .unknown) }

    /// The connection was lost, or another server is believed now.
    func lost() -> Step { .look }
}
