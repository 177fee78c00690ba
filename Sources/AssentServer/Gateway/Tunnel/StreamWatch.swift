import AssentCore
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOPosix

/// Stays with the replies that do not end by themselves, as ``TunnelOpening`` does with WebSockets: they are bounded in
/// number and silence, and their callers are looked up again.
///
/// An event stream has a place of its route from its beginning. Any other reply that does not say how long it is needs
/// one when it has gone on for ``RouteStreams/recheckSeconds``. One that says its length ends by itself.
struct StreamWatch: Sendable {
    let served: ServedRoute
    let count: TunnelCount
    /// Whose places it takes (``ClientAddress/limitKey``).
    let address: String?
    let logger: Logger

    /// Looks the caller up again; `nil` where nobody was asked who they are.
    let isGranted: (@Sendable () async -> Bool)?

    private static let eventStream = "text/event-stream"

    /// Whether a request can be answered at all: one that asks for events needs a place for them.
    func hasPlace(for request: HTTPFields) -> Bool {
        guard request[values: .accept].contains(where: Self.asksForEvents) else { return true }
        let hasPlace = count.hasPlace(
            served.route.name, .stream, limit: served.route.streams.limit, for: address)
        if !hasPlace { noteFull() }
        return hasPlace
    }

    /// What the client gets of a reply's content; `nil` when there is no place for it.
    func body(of reply: HTTPReply) -> ResponseBody? {
        guard reply.body.inMemory == nil, reply.body.length == nil else { return ResponseBody(reply.body) }
        var place: TunnelPlace?
        if Self.isEventStream(reply.response.headerFields) {
            place = takePlace()
            guard place != nil else { return nil }
        }
        let taken = Locked(place)
        return ResponseBody { writer in
            let (reading, life) = (BreakableReading(reply.body), Tunnel())
            Task { await watch(life, reading, taken) }
            defer { life.ended() }
            while let chunk = try await reading.next() {
                try await writer.write(ByteBuffer(bytes: chunk))
                life.heard()
            }
            try await writer.finish(nil)
        }
    }

    /// Watches until the reply is over, or breaks it off.
    private func watch(_ life: Tunnel, _ reading: BreakableReading, _ taken: Locked<TunnelPlace?>) async {
        let limits = TunnelLife.Limits(
            silence: Int64(served.route.upstream.timeouts.silence) * 1000,
            recheck: Int64(served.route.streams.recheckSeconds) * 1000)
        let ending = await life.watch(limits, on: MultiThreadedEventLoopGroup.singleton.any()) {
            guard hasPlace(in: taken) else { return false }
            return await isGranted?() ?? true
        }
        guard let ending else { return }
        logger.info(
            "a stream was closed", metadata: ["route": "\(served.route.name)", "reason": "\(ending.rawValue)"])
        reading.breakOff()
    }

    private func hasPlace(in taken: Locked<TunnelPlace?>) -> Bool {
        if taken.withLock({ $0 != nil }) { return true }
        guard let place = takePlace() else { return false }
        taken.withLock { $0 = place }
        return true
    }

    private func takePlace() -> TunnelPlace? {
        let place = TunnelPlace.take(
            count, served.route.name, .stream, limit: served.route.streams.limit, for: address)
        if place == nil { noteFull() }
        return place
    }

    private func noteFull() {
        logger.notice(
            """
            a stream was refused: there are as many as maxStreams or the open files (ulimit -n) allow, or as its address \
            may have
            """,
            metadata: ["route": "\(served.route.name)", "address": "\(address ?? "none")"])
    }

    private static func asksForEvents(_ accept: String) -> Bool {
        // Most requests name no type with a hyphen, and that is seen faster.
        accept.utf8.contains(UInt8(ascii: "-")) && accept.lowercased().contains(eventStream)
    }

    private static func isEventStream(_ fields: HTTPFields) -> Bool {
        let type = fields[.contentType]?.prefix { $0 != ";" } ?? ""
        return type.lowercased().filter { $0 != " " && $0 != "\t" } == eventStream
    }
}

/// Reads a service's content, and can be broken off from elsewhere while it waits for more.
final class BreakableReading: Sendable {
    private enum State {
        case open(Task<[UInt8]?, any Error>?)
        case broken
    }

    private let state = Locked(State.open(nil))
    private let pull: @Sendable () async throws -> [UInt8]?

    /// Starts reading.
    init(_ body: HTTPBody) { pull = body.reading() }

    /// The next bytes; `nil` at the end.
    ///
    /// - Throws: `CancellationError` when it was broken off, or what the service's connection throws.
    func next() async throws -> [UInt8]? {
        let task = state.withLock { state -> Task<[UInt8]?, any Error>? in
            guard case .open = state else { return nil }
            let task = Task { [pull] in try await pull() }
            state = .open(task)
            return task
        }
        guard let task else { throw CancellationError() }
        let bytes = try await task.value
        let isOpen = state.withLock { state in
            if case .open = state { true } else { false }
        }
        guard isOpen else { throw CancellationError() }
        return bytes
    }

    /// From now on nothing more is read, and who waits for more waits no longer.
    func breakOff() {
        let waiting = state.withLock { state -> Task<[UInt8]?, any Error>? in
            defer { state = .broken }
            if case .open(let task) = state { return task }
            return nil
        }
        waiting?.cancel()
    }
}
