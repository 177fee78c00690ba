import AssentCore
import NIOCore
import NIOPosix

/// What is done after some seconds, unless everything has ended before.
final class Deadlines: Sendable {
    private let scheduled = Locked<[Scheduled<Void>]>([])

    func add(_ seconds: Int64, _ body: @escaping @Sendable () -> Void) {
        let one = MultiThreadedEventLoopGroup.singleton.any().scheduleTask(in: .seconds(seconds), body)
        scheduled.withLock { $0.append(one) }
    }

    func cancel() {
        scheduled.withLock { scheduled in for one in scheduled { one.cancel() } }
    }
}
