/// The life of a tunnel, as a value without I/O: when its caller is looked up again, and when it ends.
///
/// Times are milliseconds of any clock that does not go back.
struct TunnelLife: Sendable, Hashable {
    /// What is to be done next.
    enum Step: Sendable, Hashable {
        /// Nothing until then, unless something happens.
        case wait(until: Int64)
        /// Look up the caller, and say what came of it: ``TunnelLife/checked(isGranted:at:)``.
        case check
        /// Close both ends.
        case close(Ending)
    }

    /// Why a tunnel ends.
    enum Ending: String, Sendable, Hashable {
        /// Nothing came from either end for too long.
        case silent
        /// The caller would not be let in any more.
        case refused
    }

    /// What a route says of its tunnels.
    struct Limits: Sendable, Hashable {
        /// For how long neither end may send anything.
        var silence: Int64
        /// After how long the caller is looked up again; `nil` where nobody is asked who they are.
        var recheck: Int64?
    }

    private let limits: Limits
    private var heardAt: Int64
    private var checkedAt: Int64
    private var ending: Ending?

    /// A tunnel that was opened at `now`, for a caller who was let in then.
    init(_ limits: Limits, at now: Int64) {
        self.limits = limits
        heardAt = now
        checkedAt = now
    }

    /// One end has sent something.
    mutating func heard(at time: Int64) { heardAt = max(heardAt, time) }

    /// What came of the lookup that was begun at `time`. A refusal is for good.
    mutating func checked(isGranted: Bool, at time: Int64) {
        checkedAt = max(checkedAt, time)
        if !isGranted { ending = .refused }
    }

    /// What is to be done at `now`.
    func next(at now: Int64) -> Step {
        if let ending { return .close(ending) }
        let silentAt = heardAt + limits.silence
        if now >= silentAt { return .close(.silent) }
        guard let recheck = limits.recheck else { return .wait(until: silentAt) }
        return now >= checkedAt + recheck ? .check : .wait(until: min(silentAt, checkedAt + recheck))
    }
}
