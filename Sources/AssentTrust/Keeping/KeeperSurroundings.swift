package import AssentCore
import Foundation
package import Logging

/// What a keeper of signed documents works with, and what those of trust files and of device configurations do alike.
package struct KeeperSurroundings: Sendable {
    let store: any SecretStore
    let network: any HTTPTransport
    let clock: any WallClock
    let logger: Logger

    /// - Parameters:
    ///   - store: the vault.
    ///   - network: carries the questions, without cookies and credentials.
    ///   - clock: where the time comes from.
    ///   - logger: is told what was refused.
    package init(store: any SecretStore, network: any HTTPTransport, clock: any WallClock, logger: Logger) {
        (self.store, self.network, self.clock, self.logger) = (store, network, clock, logger)
    }

    /// Until when a call that begins now may wait: as long as it may take, or connect and be silent where it has no
    /// limit.
    func deadline(of call: HTTPCall) -> Date {
        let limit = call.limits.total ?? call.limits.connect + call.limits.read
        return clock.now.addingTimeInterval(limit / .seconds(1))
    }

    /// Runs a round of questions while no other process that shares the vault does. What fails is in the log, and
    /// what was known stays.
    ///
    /// - Parameters:
    ///   - what: of the log.
    ///   - name: of the record.
    ///   - patience: how many seconds another process is waited for.
    ///   - body: the round.
    func update(
        _ what: String, under name: String, patience: TimeInterval, _ body: () async throws -> Void
    ) async {
        do {
            let deadline = clock.now.addingTimeInterval(patience)
            try await store.withExclusiveAccess(name, deadline: deadline, body)
        } catch {
            logger.warning("\(what) was not updated", metadata: ["reason": "\(error.explanationOrType)"])
        }
    }

    /// Puts a record into the vault. Where that fails it holds for this process all the same.
    func keep(_ record: Secret, as name: String, of what: String) async {
        do {
            try await store.update(name, to: record, expected: .any)
        } catch {
            logger.warning(
                "\(what) is not stored, and holds for this process only",
                metadata: ["reason": "\(error.explanationOrType)"])
        }
    }

    /// Waits for a round until a time; the round goes on after that. `nil`: until its end.
    ///
    /// - Returns: whether the round was over by then; `false` also when the task was cancelled.
    func isOver(_ round: Task<Void, Never>, by deadline: Date?) async -> Bool {
        guard let deadline else {
            await round.value
            return true
        }
        let (over, end) = AsyncStream.makeStream(of: Bool.self, bufferingPolicy: .bufferingOldest(1))
        Task {
            await round.value
            end.yield(true)
            end.finish()
        }
        let timer = Task { [clock] in
            try await clock.sleep(until: deadline)
            end.yield(false)
            end.finish()
        }
        defer { timer.cancel() }
        for await isOver in over { return isOver }
        // The call was cancelled, and not the round.
        return false
    }

    /// What a call ends with that could not wait for the end of a round.
    static func unfinished(_ what: String) -> HTTPTransportError {
        guard !Task.isCancelled else {
            return HTTPTransportError(.cancelled, "The call was cancelled. Nothing was sent.")
        }
        return HTTPTransportError(
            .timedOut, "\(what) took longer to answer than the call may. Nothing was sent.")
    }
}
