import AssentCore

/// Room that several memories share, beyond what each has for itself.
package final class SharedRoom: Sendable {
    private let free: Locked<Int>

    /// Room for so many.
    package init(_ count: Int) {
        free = Locked(max(0, count))
    }

    /// Takes room for one more.
    ///
    /// - Returns: whether there was any.
    func take() -> Bool {
        free.withLock { free in
            guard free > 0 else { return false }
            free -= 1
            return true
        }
    }

    /// Gives room back that was taken.
    func giveBack(_ count: Int) { free.withLock { $0 += count } }
}
