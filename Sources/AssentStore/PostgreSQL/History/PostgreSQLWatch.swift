#if PostgreSQL && os(Linux)
import AssentCore
import Foundation

/// A thread that looks at all servers every few seconds, and writes the node's mark.
final class PostgreSQLWatch: Sendable {
    private let keeper: PostgreSQLKeeper
    private let ending = Locked<Ending?>(nil)
    private let bell: PostgreSQLBell?
    /// Ends when the thread has.
    private let thread = AsyncStream.makeStream(of: Never.self)

    private enum Ending {
        case atOnce
        case withMark
    }

    init(_ keeper: PostgreSQLKeeper) {
        self.keeper = keeper
        bell = try? PostgreSQLBell()
        if let bell { Thread.detachNewThread { self.run(bell) } }
    }

    /// Ends the thread soon.
    func end() { end(.atOnce) }

    /// Ends the thread, which first writes the mark if something was committed since the last one: otherwise a backup
    /// from just before the stop could not be told from what the node has used. A program that remembers no mark writes
    /// none. It is waited for no longer than ``PostgreSQLConfiguration/stopLimit``.
    func finish() async {
        guard bell != nil, keeper.configuration.node != nil else { return end() }
        end(.withMark)
        let (hasEnded, limit) = (thread.stream, Duration.milliseconds(keeper.configuration.stopLimit))
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in hasEnded {} }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }

    private func end(_ way: Ending) {
        ending.withLock { $0 = way }
        bell?.ring()
    }

    private func run(_ bell: PostgreSQLBell) {
        defer { thread.continuation.finish() }
        var session: PostgreSQLSession?
        while ending.withLock({ $0 == nil }) {
            var place = pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&place, 1, Int32(clamping: keeper.configuration.watchInterval)) == 0 else {
                bell.answer()
                continue
            }
            keeper.watch()
            mark(&session, bell)
        }
        if ending.withLock({ $0 == .withMark }) { mark(&session, bell) }
    }

    private func mark(_ session: inout PostgreSQLSession?, _ bell: PostgreSQLBell) {
        guard keeper.wantsMark else { return }
        do {
            let open = try session ?? keeper.opening.open(bell: bell)
            session = keeper.isCurrent(open) ? open : nil
            try keeper.mark(over: open)
        } catch {
            session = nil
        }
    }
}
#endif
