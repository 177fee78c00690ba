import AssentCore
import Foundation
import TestSupport
import Testing

/// Users that pay one transfer after the other, each at its server, until that is gone or the test has seen enough.
final class Payments: Sendable {
    /// A transfer that was approved and sent.
    struct Attempt: Sendable {
        let payee: String
        let session: String
        let transaction: String
        /// The reply's status; `nil` when there was none.
        let status: Int?
    }

    private struct State {
        var attempts: [Attempt] = []
        /// How many requests were answered with 503: the server could not reach its database.
        var unavailable = 0
        /// Users that have not given up.
        var users = 0
        var isOver = false
    }

    private let state = Watched(State())
    private let tasks: Locked<[Task<Void, Never>]> = Locked([])

    /// Lets so many users begin, in turn at these servers, of which the first has made Ana's password.
    static func begin(_ servers: [ServeProcess], workers: Int) async throws -> Payments {
        let payments = Payments()
        let password = try #require(servers.first?.password)
        for worker in 0..<workers {
            let serve = servers[worker % servers.count]
            let session = try await serve.signIn("ana", password: password)
            payments.state.update { $0.users += 1 }
            let task = Task {
                defer { payments.state.update { $0.users -= 1 } }
                var number = 0
                while !payments.state.value.isOver {
                    number += 1
                    guard await payments.pay("P\(worker)-\(number)", at: serve, session: session) else { return }
                }
            }
            payments.tasks.withLock { $0.append(task) }
        }
        return payments
    }

    /// Makes one transfer as far as it goes. Returns whether the server is still there.
    private func pay(_ payee: String, at serve: ServeProcess, session: String) async -> Bool {
        guard let refused = try? await serve.transfer(to: payee, session: session) else { return false }
        guard refused.status == 401, let id = try? ServerFixture.transactionID(refused) else {
            return wasUnavailable(refused)
        }
        guard let approved = try? await serve.approve(id, session: session) else { return false }
        guard approved.status == 200 else { return wasUnavailable(approved) }
        let reply = try? await serve.transfer(to: payee, session: session, transaction: id)
        state.update {
            $0.attempts.append(Attempt(payee: payee, session: session, transaction: id, status: reply?.status))
            if reply?.status == 503 { $0.unavailable += 1 }
        }
        return reply != nil
    }

    private func wasUnavailable(_ answer: Answer) -> Bool {
        guard answer.status == 503 else {
            Issue.record("\(answer.status) \(answer.text)")
            return false
        }
        state.update { $0.unavailable += 1 }
        return true
    }

    /// How many transfers were paid until now.
    var paid: Int { state.value.attempts.count { $0.status == 201 } }

    /// How many requests were answered with 503 until now.
    var unavailable: Int { state.value.unavailable }

    /// Waits until so many transfers were paid, or every user has given up.
    func waitUntilPaid(_ count: Int) async {
        await state.wait { $0.users == 0 || $0.attempts.count { $0.status == 201 } >= count }
        #expect(paid >= count)
    }

    /// Waits until so many requests were answered with 503, or every user has given up.
    func waitUntilUnavailable(_ count: Int) async {
        await state.wait { $0.users == 0 || $0.unavailable >= count }
        #expect(unavailable >= count)
    }

    /// Waits until the last user has given up.
    func end() async -> [Attempt] {
        for task in tasks.withLock({ $0 }) { await task.value }
        return state.value.attempts
    }

    /// Lets the users end their present transfer, and no more.
    func stop() async -> [Attempt] {
        state.update { $0.isOver = true }
        return await end()
    }
}
