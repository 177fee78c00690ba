import AssentCore
import NIOCore

/// An open tunnel, or a reply that goes on, as its two ends and who watches it share it.
final class Tunnel: Sendable {
    private struct State {
        var heardAt: Int64
        var isOver = false
        var waiting: Eventually<Void>?
    }

    private let state: Locked<State>

    init() { state = Locked(State(heardAt: Self.now)) }

    /// Milliseconds of a clock that does not go back.
    static var now: Int64 { Int64(NIODeadline.now().uptimeNanoseconds / 1_000_000) }

    /// One end has sent something.
    func heard() { state.withLock { $0.heardAt = Self.now } }

    /// It is closed.
    func ended() {
        let waiting = state.withLock { state in
            state.isOver = true
            return state.waiting
        }
        waiting?.settle(.success(()))
    }

    /// Watches until it is over.
    ///
    /// - Parameters:
    ///   - limits: how long it may be silent, and when its caller is looked up.
    ///   - loop: where time passes.
    ///   - isGranted: looks the caller up.
    /// - Returns: why it must be closed; `nil` when one of its ends has closed it.
    func watch(
        _ limits: TunnelLife.Limits, on loop: any EventLoop, isGranted: @Sendable () async -> Bool
    ) async -> TunnelLife.Ending? {
        var life = TunnelLife(limits, at: Self.now)
        while true {
            let (heardAt, isOver) = state.withLock { ($0.heardAt, $0.isOver) }
            if isOver { return nil }
            life.heard(at: heardAt)
            switch life.next(at: Self.now) {
            case .close(let ending): return ending
            case .check:
                let began = Self.now
                life.checked(isGranted: await isGranted(), at: began)
            case .wait(let time): await wait(milliseconds: time - Self.now, on: loop)
            }
        }
    }

    /// Waits for so long, or until it is over.
    private func wait(milliseconds: Int64, on loop: any EventLoop) async {
        let due = Eventually<Void>()
        let isOver = state.withLock { state in
            state.waiting = due
            return state.isOver
        }
        guard !isOver else { return }
        let timer = loop.scheduleTask(in: .milliseconds(max(1, milliseconds))) { due.settle(.success(())) }
        try? await due.value
        timer.cancel()
    }
}

/// How many tunnels and streams each route has, and all together.
final class TunnelCount: Sendable {
    /// What is counted by itself.
    enum Kind: Sendable, Hashable {
        /// A WebSocket.
        case tunnel
        /// A reply that does not end by itself.
        case stream
    }

    private struct Key: Hashable {
        let kind: Kind
        let route: String
    }

    private let open = Locked<[Key: Int]>([:])
    private let total: Int

    /// Places for so many tunnels of all routes.
    init(total: Int = TunnelCount.share(of: ConnectionLimits.processDescriptors)) { self.total = total }

    /// How many tunnels there may be in a process with so many descriptors. Each has a second one, for its service,
    /// out of the quarter that ``ConnectionLimits`` leaves: half of that is for the database and all other requests.
    static func share(of descriptors: Int) -> Int { max(64, descriptors / 4) / 2 }

    /// Whether a route that may have so many has a place left.
    func hasPlace(_ route: String, _ kind: Kind = .tunnel, limit: Int) -> Bool {
        open.withLock { hasPlace(Key(kind: kind, route: route), limit: limit, $0) }
    }

    /// Takes a place of a route that may have so many; `false` when there is none left.
    func enter(_ route: String, _ kind: Kind = .tunnel, limit: Int) -> Bool {
        let key = Key(kind: kind, route: route)
        return open.withLock { open in
            guard hasPlace(key, limit: limit, open) else { return false }
            open[key, default: 0] += 1
            return true
        }
    }

    /// Gives a place back.
    func leave(_ route: String, _ kind: Kind = .tunnel) {
        let key = Key(kind: kind, route: route)
        open.withLock { open in
            let left = open[key, default: 0] - 1
            open[key] = left > 0 ? left : nil
        }
    }

    private func hasPlace(_ key: Key, limit: Int, _ open: [Key: Int]) -> Bool {
        open[key, default: 0] < limit && open.values.reduce(0, +) < total
    }
}

/// A place of a ``TunnelCount``, which is given back when nobody has it any more.
final class TunnelPlace: Sendable {
    private let count: TunnelCount
    private let route: String
    private let kind: TunnelCount.Kind

    private init(_ count: TunnelCount, _ route: String, _ kind: TunnelCount.Kind) {
        self.count = count
        self.route = route
        self.kind = kind
    }

    /// Takes a place of a route that may have so many; `nil` when there is none left.
    static func take(
        _ count: TunnelCount, _ route: String, _ kind: TunnelCount.Kind, limit: Int
    ) -> TunnelPlace? {
        // No object before the place is taken: it would give one back.
        count.enter(route, kind, limit: limit) ? TunnelPlace(count, route, kind) : nil
    }

    deinit { count.leave(route, kind) }
}
