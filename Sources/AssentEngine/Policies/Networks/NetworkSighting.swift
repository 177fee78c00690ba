/// That a user has signed in, or approved a transaction, from the network that a request comes from.
package struct NetworkSighting: Sendable, Hashable {
    /// How strongly the journey has proved who the user is.
    package let authLevel: Int

    /// When, in seconds since 1970.
    package let seenAt: Int64

    /// A sighting.
    package init(authLevel: Int, seenAt: Int64) {
        self.authLevel = authLevel
        self.seenAt = seenAt
    }

    /// Until when it makes the network usual for a condition of so many days, in seconds since 1970.
    func end(days: Int64) -> Int64 { seenAt + days * 86_400 }

    /// Whether it makes the network usual. One that is later than now, because the clock was moved back, does not.
    func isEnough(days: Int64, level: Int, at now: Int64) -> Bool {
        authLevel >= level && now < end(days: days) && seenAt <= now + TransactionSQL.clockTolerance
    }
}

extension [NetworkSighting] {
    /// Until when the network is usual, in seconds since 1970; `nil` when it is not.
    func usualUntil(days: Int64, level: Int, at now: Int64) -> Int64? {
        filter { $0.isEnough(days: days, level: level, at: now) }.map { $0.end(days: days) }.max()
    }
}
