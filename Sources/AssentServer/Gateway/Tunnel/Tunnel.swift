import AssentCore
import AssentEngine
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

/// How many tunnels and streams each route has, each client's address, and all together.
///
/// The places of all are given out as those of connections are, so that one address cannot take them from everybody
/// else: it has fewer of them than it may have connections.
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

    private struct Open {
        var routes: [Key: Int] = [:]
        var addresses: Shares<String?>
    }

    private let open: Locked<Open>

    /// Places for tunnels of all routes.
    ///
    /// - Parameters:
    ///   - total: how many there are.
    ///   - perAddress: how many one address may have; `nil` for a share of what is left.
    init(total: Int = TunnelCount.share(of: ConnectionLimits.processDescriptors), perAddress: Int? = nil) {
        open = Locked(Open(addresses: Shares(total: total, perHolder: perAddress)))
    }

    /// How many tunnels there may be in a process with so many descriptors. Each has a second one, for its service,
    /// out of the quarter that ``ConnectionLimits`` leaves: half of that is for the database and all other requests.
    static func share(of descriptors: Int) -> Int { max(64, descriptors / 4) / 2 }

    /// Whether a route that may have so many has a place left for an address (``ClientAddress/limitKey``).
    func hasPlace(_ route: String, _ kind: Kind = .tunnel, limit: Int, for address: String?) -> Bool {
        let key = Key(kind: kind, route: route)
        return open.withLock { $0.routes[key, default: 0] < limit && $0.addresses.left(for: address) > 0 }
    }

    /// Takes a place of a route that may have so many; `false` when the route or the address has used up its places.
    func enter(_ route: String, _ kind: Kind = .tunnel, limit: Int, for address: String?) -> Bool {
        let key = Key(kind: kind, route: route)
        return open.withLock { open in
            guard open.routes[key, default: 0] < limit, open.addresses.enter(address) else { return false }
            open.routes[key, default: 0] += 1
            return true
        }
    }

    /// Gives a place back.
    func leave(_ route: String, _ kind: Kind = .tunnel, for address: String?) {
        let key = Key(kind: kind, route: route)
        open.withLock { open in
            open.addresses.leave(address)
            let left = open.routes[key, default: 0] - 1
            open.routes[key] = left > 0 ? left : nil
        }
    }
}

/// A place of a ``TunnelCount``, which is given back when nobody has it any more.
final class TunnelPlace: Sendable {
    private let count: TunnelCount
    private let route: String
    private let kind: TunnelCount.Kind
    private let address: String?

    private init(_ count: TunnelCount, _ route: String, _ kind: TunnelCount.Kind, for address: String?) {
        self.count = count
        self.route = route
        self.kind = kind
        self.address = address
    }

    /// Takes a place of a route that may have so many; `nil` when the route or the address has used up its places.
    static func take(
        _ count: TunnelCount, _ route: String, _ kind: TunnelCount.Kind, limit: Int, for address: String?
    ) -> TunnelPlace? {
        // No object before the place is taken: it would give one back.
        count.enter(route, kind, limit: limit, for: address) ? TunnelPlace(count, route, kind, for: address) : nil
    }

    deinit { count.leave(route, kind, for: address) }
}
