import AssentCore
import AssentTokens

/// Cookies that resources have set in the user's calls. They may say who the user is, so they are those of one sign-in:
/// as soon as another one takes its place, however that comes about, they are not sent any more, and what calls of the
/// user before bring is not kept.
final class UserCookies: CookieJar {
    private struct State {
        /// The calls of the user go through this jar: each would keep the other for ever.
        weak var user: CurrentUser?
        var signIn: SignInMark?
        var table = CookieTable()
        var removals: UInt64 = 0

        mutating func removeAll() {
            table = CookieTable()
            removals &+= 1
        }
    }

    private let clock: any WallClock
    private let state = Locked(State())

    init(clock: any WallClock) { self.clock = clock }

    /// Says whose cookies they are.
    func attach(_ user: CurrentUser) { state.withLock { $0.user = user } }

    var removals: UInt64 { current { $0.removals } }

    @discardableResult
    func store(
        _ setCookies: [String], from origin: Origin, path: String, since removals: UInt64?
    ) -> [WireError] {
        let now = clock.now
        return current { state -> [WireError] in
            guard removals == nil || removals == state.removals else { return [] }
            return state.table.store(setCookies, from: origin, path: path, now: now)
        }
    }

    func cookies(for origin: Origin, path: String) -> [Cookie] {
        let now = clock.now
        return current { $0.table.cookies(for: origin, path: path, now: now) }
    }

    /// Removes every cookie.
    func removeAll() { current { $0.removeAll() } }

    /// Runs `body` on the cookies of the sign-in of now.
    private func current<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        // Not while the lock is held: it has locks of its own.
        let signIn = state.withLock { $0.user }?.signIn
        return state.withLock { state in
            if state.signIn !== signIn {
                state.removeAll()
                state.signIn = signIn
            }
            return body(&state)
        }
    }
}
