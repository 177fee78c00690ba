/// What it costs to check a password, and how many checks may run.
package struct PasswordPolicy: Sendable, Hashable {
    /// The logarithm of scrypt's N (RFC 7914 §2). 17 needs 128 MiB and some tenths of a second for each check.
    package var logN: Int

    /// How many checks run at once.
    package var parallelChecks: Int

    /// How many more may wait; beyond that the server says that it is busy.
    package var waitingChecks: Int

    /// The least cost outside of development.
    package static let minimumLogN = 17

    /// A policy; the defaults suit production on a small machine.
    package init(logN: Int = 17, parallelChecks: Int = 2, waitingChecks: Int = 64) {
        self.logN = logN
        self.parallelChecks = parallelChecks
        self.waitingChecks = waitingChecks
    }

    /// What is wrong with it, in words for the operator; empty when nothing is. A low cost is allowed in `development`
    /// only.
    package func issues(development: Bool) -> [String] {
        var issues: [String] = []
        if !PasswordHash.acceptedLogN.contains(logN) {
            let range = PasswordHash.acceptedLogN
            issues.append("the cost must be from \(1 << range.lowerBound) to \(1 << range.upperBound)")
        } else if !development, logN < Self.minimumLogN {
            issues.append("a cost below \(1 << Self.minimumLogN) needs development: true")
        }
        if !(1...64).contains(parallelChecks) { issues.append("parallelChecks must be from 1 to 64") }
        if !(0...10_000).contains(waitingChecks) { issues.append("waitingChecks must be from 0 to 10000") }
        return issues
    }
}

/// How many wrong passwords a user name may get before it is shut for a while. It counts names, whether or not they
/// exist.
package struct SignInLimits: Sendable, Hashable {
    /// How many attempts are allowed in a window; a success forgets them.
    package var attempts: Int64

    /// The window, in seconds.
    package var window: Int64

    /// Limits.
    package init(attempts: Int64 = 10, window: Int64 = 300) {
        self.attempts = attempts
        self.window = window
    }
}
