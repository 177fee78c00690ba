#if PostgreSQL && os(Linux)
import AssentCore
import Foundation

/// A thread that looks at all servers every few seconds, and writes the node's mark.
final class PostgreSQLWatch: Sendable {
    private let keeper: PostgreSQLKeeper
    private let isEnding = Locked(false)
    private let bell: PostgreSQLBell?

    init(_ keeper: PostgreSQLKeeper) {
        self.keeper = keeper
        bell = try? PostgreSQLBell()
        if let bell { Thread.detachNewThread { self.run(bell) } }
    }

    /// Ends the thread soon.
    func end() {
        isEnding.withLock { $0 = true }
        bell?.ring()
    }

    private func run(_ bell: PostgreSQLBell) {
        var session: PostgreSQLSession?
        while !isEnding.withLock({ $0 }) {
            var place = pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&place, 1, Int32(clamping: keeper.configuration.watchInterval)) == 0 else {
                bell.answer()
                continue
            }
            keeper.watch()
            guard keeper.wantsMark else { continue }
            do {
                let open = try session ?? keeper.opening.open(bell: bell)
                session = keeper.isCurrent(open) ? open : nil
                try keeper.mark(over: open)
            } catch {
                session = nil
            }
        }
    }
}
#endif
