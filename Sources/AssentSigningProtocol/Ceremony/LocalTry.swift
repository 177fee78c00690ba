/// One try of a `local` password, without I/O: failures are counted before the try is made.
package struct LocalTry: Hashable, Sendable {
    package let lock: LocalPasswordLock
    /// Failures in a row, as they are stored.
    package let failures: Int

    package init(lock: LocalPasswordLock, failures: Int) { (self.lock, self.failures) = (lock, failures) }

    /// What is to be done.
    package enum Step: Hashable, Sendable {
        /// Store one more failure, then try.
        case attempt
        /// Refuse for so many seconds.
        case wait(Int)
        /// Destroy what the password opens.
        case destroy
    }

    /// What is done before a try. `elapsed` is the time since the last failure, or since the process began, by a clock
    /// that nobody can set.
    package func before(elapsed: Duration) -> Step {
        if case .counter(let max) = lock, failures >= max { return .destroy }
        return delay(failures, elapsed: elapsed).map { .wait($0) } ?? .attempt
    }

    /// What follows a wrong password.
    ///
    /// - Returns: ``Step/destroy``, or the seconds to wait and the tries that are left, where there is a limit.
    package func afterWrong() -> (isDestroyed: Bool, remaining: Int?, wait: Int?) {
        if case .counter(let max) = lock {
            return (failures + 1 >= max, max - failures - 1, nil)
        }
        return (false, nil, delay(failures + 1, elapsed: .zero))
    }

    /// Seconds that are left to wait, rounded up.
    private func delay(_ failures: Int, elapsed: Duration) -> Int? {
        guard case .delay(let seconds, let counter) = lock, failures > 0 else { return nil }
        let left = Duration.seconds(seconds << (min(failures, counter) - 1)) - elapsed
        guard left > .zero else { return nil }
        return Int(left.components.seconds) + (left.components.attoseconds > 0 ? 1 : 0)
    }
}
