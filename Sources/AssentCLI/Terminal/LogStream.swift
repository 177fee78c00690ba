import AssentCore
import Foundation

/// Where a server's log goes: to a descriptor, as long as somebody takes the lines.
///
/// Lines are written where requests are answered. A reader that stands still (a program behind a pipe that was stopped,
/// a terminal after Ctrl-S) would hold up all of them, and the end of the process as well. So after some patience its
/// lines are left out, and the next one that it takes says how many.
final class LogStream: TextOutputStream, Sendable {
    private struct State {
        /// Whether nothing was taken when that was last waited for.
        var isStalled = false
        /// How many lines were left out since the last one that was taken.
        var leftOut = 0
        /// Whether the last line has a beginning there, and no end.
        var isCut = false
    }

    /// A pipe that takes something takes so many bytes without waiting (`PIPE_BUF`).
    private static let piece = 4096

    private let descriptor: Int32
    private let patience: Int32
    private let state = Locked(State())
    /// Not ``Locked``, whose bodies do not block: this one waits for the reader.
    private let turn = NSLock()

    /// The log of this process, unless another descriptor is named.
    ///
    /// - Parameters:
    ///   - descriptor: where lines are written. It stays open.
    ///   - patience: for how many milliseconds a reader is waited for that has taken everything until now.
    init(descriptor: Int32 = STDERR_FILENO, patience: Int32 = 1000) {
        self.descriptor = descriptor
        self.patience = patience
    }

    /// Writes a line, or leaves it out.
    func write(_ line: String) {
        turn.lock()
        defer { turn.unlock() }
        let (leftOut, wasCut) = state.withLock { ($0.leftOut, $0.isCut) }
        var text = line
        if leftOut > 0 { text = "Lines of the log are missing here, because nobody took them: \(leftOut)\n" + text }
        if wasCut { text = "\n" + text }
        let bytes = Array(text.utf8)
        let taken = put(bytes)
        state.withLock { state in
            state.leftOut = taken == bytes.count ? 0 : leftOut + 1
            state.isCut = taken == 0 ? wasCut : taken < bytes.count
        }
    }

    /// Returns how many of the bytes were taken.
    private func put(_ bytes: [UInt8]) -> Int {
        var taken = 0
        while taken < bytes.count, isReady {
            let piece = bytes[taken...].prefix(Self.piece)
            let count = piece.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                taken += count
            } else if count == 0 || errno != EINTR {
                break
            }
        }
        return taken
    }

    /// Whether something is taken now, or soon. What is wrong with the descriptor the next write tells.
    private var isReady: Bool {
        let time = state.withLock { $0.isStalled } ? 0 : patience
        var place = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        var count = poll(&place, 1, time)
        while count < 0, errno == EINTR { count = poll(&place, 1, time) }
        let isStalled = count == 0
        state.withLock { $0.isStalled = isStalled }
        return !isStalled
    }
}
