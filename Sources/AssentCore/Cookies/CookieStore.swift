/// Cookies in memory (RFC 6265 §5.3, §5.4), bounded, with the time from an injected clock.
public actor CookieStore: CookieJar {
    /// The most cookies that one host may have; the one that was used longest ago makes room.
    public static let cookiesPerHost = 50

    /// The most cookies of all hosts together.
    public static let cookiesInAll = 1000

    private let clock: any WallClock
    private var table = CookieTable()
    private nonisolated let removed = Locked<UInt64>(0)

    /// How often everything was removed.
    public nonisolated var removals: UInt64 { removed.withLock { $0 } }

    /// An empty store.
    public init(clock: any WallClock) {
        self.clock = clock
    }

    /// All cookies that have not expired, in the order in which they were first set; to keep them elsewhere.
    public var cookies: [Cookie] { table.cookies(now: clock.now) }

    /// Keeps the cookies that a reply to `request` set. One that is not acceptable is left out; the others still count.
    ///
    /// - Returns: why cookies were left out; never their values.
    @discardableResult
    public func store(
        _ setCookies: [String], from origin: Origin, path: String, since removals: UInt64? = nil
    ) -> [WireError] {
        guard removals == nil || removals == self.removals else { return [] }
        return table.store(setCookies, from: origin, path: path, now: clock.now)
    }

    /// Keeps a cookie, or removes the one it replaces when it has expired.
    public func insert(_ cookie: Cookie) {
        table.insert(cookie, now: clock.now)
    }

    /// The cookies that a request to `path` at `origin` carries: those with longer paths first, then in the order they
    /// were set.
    public func cookies(for origin: Origin, path: String) -> [Cookie] {
        table.cookies(for: origin, path: path, now: clock.now)
    }

    /// Removes every cookie.
    public func removeAll() {
        removed.withLock { $0 += 1 }
        table = CookieTable()
    }
}
