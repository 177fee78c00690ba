import AssentCore
import Foundation

/// Runs a ``PromptQueue``: calls wait here until they may ask the user, or until somebody else has asked the same.
actor StepUpCoordinator {
    enum Role {
        /// Ask the user, then say what came of it with ``StepUpCoordinator/finish(_:_:)``.
        case lead(Turn)
        /// Somebody else asked, and this came of it; or the wait ended.
        case follow(Result<ApprovalBinding, any Error>)
    }

    /// The turn of a call that asks.
    struct Turn {
        fileprivate let ticket: Int
        /// Whether it had to wait: what it wants to ask may be out of date.
        let hasWaited: Bool
    }

    private var queue = PromptQueue()
    private var waiting: [Int: CheckedContinuation<Role, Never>] = [:]

    /// How many calls wait now.
    var count: Int { queue.count }

    /// Waits for the turn of a call, until `deadline` at most.
    func enter(_ key: String, until deadline: Date?, clock: any WallClock) async -> Role {
        guard !queue.isFull else { return .follow(.failure(AuthorizationError.tooManyWaiting)) }
        let (ticket, mayAsk) = queue.enter(key)
        if mayAsk { return .lead(Turn(ticket: ticket, hasWaited: false)) }
        let timer = deadline.map { deadline in
            Task {
                try await clock.sleep(until: deadline)
                withdraw(ticket, AuthorizationError.tookTooLong)
            }
        }
        defer { timer?.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiting[ticket] = continuation
                if Task.isCancelled { withdraw(ticket, CancellationError()) }
            }
        } onCancel: {
            Task { await self.withdraw(ticket, CancellationError()) }
        }
    }

    /// The call that asked is done.
    ///
    /// - Parameters:
    ///   - turn: its turn.
    ///   - result: what came of it for all who want the same; `nil` when it ended for a reason of its own, and another
    ///     one asks in its place.
    func finish(_ turn: Turn, _ result: Result<ApprovalBinding, any Error>?) {
        let following = queue.finish(turn.ticket, isShared: result != nil)
        if let result {
            for ticket in following.told { waiting.removeValue(forKey: ticket)?.resume(returning: .follow(result)) }
        }
        if let next = following.next {
            waiting.removeValue(forKey: next)?.resume(returning: .lead(Turn(ticket: next, hasWaited: true)))
        }
    }

    private func withdraw(_ ticket: Int, _ reason: any Error) {
        guard queue.withdraw(ticket) else { return }
        waiting.removeValue(forKey: ticket)?.resume(returning: .follow(.failure(reason)))
    }
}

extension AuthorizationError {
    /// The patience is over.
    static let tookTooLong = AuthorizationError(.timedOut, "The user was not asked, or did not answer, in time.")

    /// The queue is full.
    static let tooManyWaiting = AuthorizationError(
        .tooManyWaiting, "\(PromptQueue.limit) other calls wait for the user already, so this one was not approved.")
}
