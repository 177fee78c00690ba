import Foundation

/// What it costs to check a password, and how many checks may be in progress.
package struct PasswordPolicy: Sendable, Hashable {
    /// The logarithm of scrypt's N (RFC 7914 §2). 17 needs 128 MiB and some tenths of a second for each check.
    package var logN: Int

    /// How many checks run at once, each on a thread of its own.
    package var parallelChecks: Int

    /// How many more may wait; beyond that the server says that it is busy.
    package var waitingChecks: Int

    /// How many checks may be in progress for one client address; `nil` for a share, which leaves room for
    /// addresses that were never seen. Users behind one proxy share its address.
    package var checksPerAddress: Int?

    /// The least cost outside of development.
    package static let minimumLogN = 17

    /// One core fewer than there are, so that one is left for everything else, and at most 8, which need a gibibyte; at
    /// least 1.
    package static var defaultParallelChecks: Int {
        min(max(ProcessInfo.processInfo.activeProcessorCount - 1, 1), 8)
    }

    /// A policy; the defaults suit production on a small machine.
    package init(
        logN: Int = 17, parallelChecks: Int = PasswordPolicy.defaultParallelChecks, waitingChecks: Int = 128,
        checksPerAddress: Int? = nil
    ) {
        self.logN = logN
        self.parallelChecks = parallelChecks
        self.waitingChecks = waitingChecks
        self.checksPerAddress = checksPerAddress
    }

    /// The bounds on checks in progress.
    var admission: PasswordAdmission {
        PasswordAdmission(total: parallelChecks + waitingChecks, perAddress: checksPerAddress)
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
        if let checksPerAddress, checksPerAddress < 1 { issues.append("checksPerAddress must be at least 1") }
        return issues
    }
}

/// How many wrong passwords a user name may get before it is shut for a while. It counts names, whether or not they
/// exist.
package struct SignInLimits: Sendable, Hashable {
    /// How many attempts one address has for a name in a window; a success from there forgets them.
    package var attempts: Int64

    /// How many attempts all addresses together have for a name in a window; a success forgets them. More than one
    /// address has, so that nobody can lock others out from one address.
    package var attemptsOfAll: Int64

    /// The window, in seconds.
    package var window: Int64

    /// Limits; `attemptsOfAll` is five times `attempts` unless it is said.
    package init(attempts: Int64 = 10, attemptsOfAll: Int64? = nil, window: Int64 = 300) {
        self.attempts = attempts
        self.attemptsOfAll = attemptsOfAll ?? 5 * attempts
        self.window = window
    }
}
