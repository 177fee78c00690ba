import AssentCore
import Foundation

/// The clock of a server beside programs that go by the machine's. It stands still until it is moved and, once it
/// follows, is at most ten seconds behind the machine's, however long the programs take. It may be ahead of that.
final class FollowingClock: WallClock {
    private struct State {
        var shown: Date
        var isFollowing = false

        var now: Date { isFollowing ? max(shown, Date().addingTimeInterval(-10)) : shown }
    }

    private let state: Locked<State>

    init(_ now: Date) { state = Locked(State(shown: now)) }

    var now: Date { state.withLock { $0.now } }

    /// Moves it, also backwards.
    func advance(by seconds: TimeInterval) { state.withLock { $0.shown = $0.now.addingTimeInterval(seconds) } }

    func follow() { state.withLock { $0.isFollowing = true } }

    func sleep(until deadline: Date) async throws {
        while now < deadline { try await SystemClock().sleep(until: Date().addingTimeInterval(0.05)) }
        try Task.checkCancellation()
    }
}
