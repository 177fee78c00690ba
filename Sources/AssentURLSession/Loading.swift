import AssentAuthorization
import AssentCore
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One request of a `URLProtocol`, from its start to its one end.
final class Loading: Sendable {
    private struct Progress {
        /// `nil` until the start is about to return.
        var task: Task<Void, Never>?
        /// How the request ended before that.
        var early: LoadingEnd?
        var isStarted = false
        var isStopped = false
    }

    private struct Held {
        let loader: URLProtocol
        #if !canImport(FoundationNetworking)
        let runLoop = RunLoop.current
        #endif
    }

    private let progress = Locked(Progress())

    /// What is told of the end. `stop` must not lock it: Foundation stops on the queue for which the methods of a
    /// protocol's client may wait, and they are called while it is locked.
    private let held = Locked<Held?>(nil)

    /// Whether it was not started before: Foundation on Linux starts a task once more for each further `resume()`.
    func isFirstStart() -> Bool {
        progress.withLock { progress -> Bool in
            defer { progress.isStarted = true }
            return !progress.isStarted
        }
    }

    /// Keeps who is told of the end, until then.
    func hold(_ loader: URLProtocol) { held.withLock { $0 = Held(loader: loader) } }

    func start(_ client: AuthorizedClient, _ request: RequestReader) {
        // Foundation on Linux may stop a request first and start it then, and nothing else comes to its end: the two
        // would keep each other.
        guard progress.withLock({ !$0.isStopped }) else {
            held.withLock { $0 = nil }
            return
        }
        let task = begin(client, request)
        let (early, isStopped) = progress.withLock { progress -> (LoadingEnd?, Bool) in
            defer { progress.early = nil }
            progress.task = task
            return (progress.early, progress.isStopped)
        }
        if isStopped { task.cancel() }
        if let early { endElsewhere(early) }
    }

    /// On Linux the call begins on this thread, Foundation's, and stays there until it waits for the first time: waking
    /// another thread is a good part of what a small call takes. What is the app's own must not run here: if it made a
    /// task of this session, or ended one, Foundation would wait for the queue that this thread has, and the process
    /// would end.
    private func begin(_ client: AuthorizedClient, _ request: RequestReader) -> Task<Void, Never> {
        #if canImport(FoundationNetworking)
        if client.beginsAnywhere { return Task.immediate { await self.run(client, request) } }
        #endif
        return Task { await self.run(client, request) }
    }

    /// Tells an end that is known on the thread of the start. `cancel()` waits for Foundation's queue, which that
    /// thread has, and who is told may have to wait for a cancellation that is under way: neither would go on.
    func endElsewhere(_ ended: LoadingEnd) { Task { end(ended) } }

    func stop() {
        let task = progress.withLock {
            $0.isStopped = true
            return $0.task
        }
        task?.cancel()
    }

    /// Tells the end, once, and not after the stop.
    func end(_ end: LoadingEnd) {
        #if canImport(FoundationNetworking)
        tell(end)
        #else
        held.withLock { $0?.runLoop.perform { self.tell(end) } }
        #endif
    }

    private func tell(_ end: LoadingEnd) {
        let isStopped = progress.withLock { $0.isStopped }
        held.withLock {
            if !isStopped, let loader = $0?.loader { end.tell(loader) }
            $0 = nil
        }
    }

    private func run(_ client: AuthorizedClient, _ request: RequestReader) async {
        do {
            let call = try await request.call(clock: client.clock)
            let reply = try await client.sendKeepingRefusal(call)
            let content: [UInt8]
            do {
                content = try await reply.body.collect(upTo: call.limits.replyBytes)
            } catch let error as HTTPTransportError where !call.isSafe {
                throw error.afterSending()
            }
            finish(.reply(reply.response, content))
        } catch {
            finish(.failure(error))
        }
    }

    /// Tells the end; before the start has returned, leaves that to the start.
    private func finish(_ ended: LoadingEnd) {
        let isEarly = progress.withLock { progress -> Bool in
            guard progress.task == nil else { return false }
            progress.early = ended
            return true
        }
        if !isEarly { end(ended) }
    }
}
