import AssentCore

/// How often something was called in the current window, at a node that has its database for itself.
final class CallCounts: Sendable {
    private struct Window {
        let start: Int64
        let end: Int64
        var count: Int64 = 0
    }

    /// So many counters are kept at once. When others come, those go whose window has ended, and if all are in use, all
    /// of them: nobody is refused because others call.
    static let limit = 65_536

    private let windows = Locked<[String: Window]>([:])

    /// How many counters are kept.
    var count: Int { windows.withLock { $0.count } }

    /// Forgets the windows that began before `time`, in seconds since 1970.
    func purge(before time: Int64) { windows.withLock { $0 = $0.filter { $0.value.start >= time } } }

    /// Counts a call in the window from `start` to `end`, and returns how many there were.
    func add(_ counter: String, from start: Int64, to end: Int64) -> Int64 {
        windows.withLock { windows in
            var window = windows[counter].flatMap { $0.start == start ? $0 : nil } ?? Window(start: start, end: end)
            window.count += 1
            if windows.count >= Self.limit, windows[counter] == nil {
                windows = windows.filter { $0.value.end > start }
                if windows.count >= Self.limit { windows = [:] }
            }
            windows[counter] = window
            return window.count
        }
    }
}
