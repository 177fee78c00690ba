import AssentAuthorization
import AssentCore
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One request of a `URLProtocol`, from its start to its one end.
final class Loading: Sendable {
    private struct Progress {
        var task: Task<Void, Never>?
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

    /// Keeps who is told of the end, until then.
    func hold(_ loader: URLProtocol) { held.withLock { $0 = Held(loader: loader) } }

    func start(_ client: AuthorizedClient, _ request: RequestReader) {
        let isStopped = progress.withLock { progress -> Bool in
            if !progress.isStopped { progress.task = Task { await self.run(client, request) } }
            return progress.isStopped
        }
        // Foundation on Linux may stop a request first and start it then, and nothing else comes to its end: the two
        // would keep each other.
        if isStopped { held.withLock { $0 = nil } }
    }

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
            end(.reply(reply.response, content))
        } catch {
            end(.failure(error))
        }
    }
}
