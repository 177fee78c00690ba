import AssentCore
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

/// Tries every combination of faults of one node with what another one does in between and with the end of the
/// transaction's time, on the real engine and a real database.
@Suite("One approved payment, two nodes, and every way in which a write can fail")
struct TransactionExplorationTests {
    /// What a node tells its client.
    private enum Reply: Hashable {
        case paid
        case usedBefore
        case refused
        case unavailable
        /// Its process has died.
        case none
    }

    private struct Case: CustomStringConvertible {
        /// What happens to the first node's writes: the take, the note that it forwards, and the outcome.
        let first: [NodeDatabase.Fault]
        /// Before which of these writes the second node tries; `nil` for never.
        let secondTries: Int?
        let second: [NodeDatabase.Fault]
        /// Before which of the first node's writes the transaction's time is over.
        let expires: Int?

        var description: String {
            "first \(first), second \(second) before write \(secondTries ?? -1), expired before \(expires ?? -1)"
        }
    }

    private static let cases: [Case] = {
        let faults = NodeDatabase.Fault.allCases
        let first = faults.flatMap { a in faults.flatMap { b in faults.map { [a, b, $0] } } }
        let second: [[NodeDatabase.Fault]] = [[], [.doneUnknown], [.none, .crashBefore]]
        return first.flatMap { first in
            [nil, 0, 1, 2].flatMap { tries in
                (tries == nil ? [[]] : second).flatMap { second in
                    [nil, 1].map { Case(first: first, secondTries: tries, second: second, expires: $0) }
                }
            }
        }
    }()

    @Test("It is forwarded once at most, and whatever was acknowledged is found again")
    func explore() async throws {
        let fixture = try await TransactionFixture(limits: TransactionLimits(creations: 1_000_000))
        // Each is tried on the embedded database; a round trip takes longer.
        for index in stride(from: 0, to: Self.cases.count, by: TestDatabase.isPostgreSQL ? 13 : 1) {
            try await run(Self.cases[index], fixture)
        }
    }

    private func run(_ each: Case, _ fixture: TransactionFixture) async throws {
        let id = try await fixture.approved()
        let forwards = Locked(0)
        let second = NodeDatabase(fixture.database, each.second)
        let replies = Locked<[Reply]>([])
        let isExpired = Locked(false)
        let first = NodeDatabase(fixture.database, each.first) { write in
            if write == each.expires {
                fixture.clock.advance(by: 181)
                isExpired.withLock { $0 = true }
            }
            guard write == each.secondTries else { return }
            let reply = await pay(id, second, forwards, fixture)
            replies.withLock { $0.append(reply) }
        }
        let reply = await pay(id, first, forwards, fixture)
        replies.withLock { $0.append(reply) }
        let last = await pay(id, NodeDatabase(fixture.database, []), forwards, fixture)
        if isExpired.withLock({ $0 }) { fixture.clock.advance(by: -181) }

        let all = replies.withLock { $0 } + [last]
        let sent = forwards.withLock { $0 }
        let rows = try await fixture.database.run(
            .read("SELECT state, outcome FROM transactions WHERE id = \(id)"))
        let isTaken = try rows.first?.text("state") == "TAKEN"
        let takes = try await fixture.audited(.transactionTake, id).count { $0 == "success -" }
        var faults: [String] = []
        func expect(_ condition: Bool, _ fault: String) { if !condition { faults.append(fault) } }
        expect(sent <= 1, "forwarded \(sent) times")
        expect(all.count { $0 == .paid } <= sent, "paid without being forwarded")
        expect(takes == (isTaken ? 1 : 0), "\(takes) records of a take")
        expect(sent == 0 || isTaken, "forwarded without being taken")
        expect(!all.dropLast().contains(.paid) || last == .usedBefore, "what was acknowledged is not found again")
        expect(last != .unavailable && last != .none, "the database is left unusable")
        // What nobody has taken is still good for one payment.
        if !isExpired.withLock({ $0 }), sent == 0 { expect(isTaken, "approved, and good for nothing") }
        #expect(faults.isEmpty, "\(each): \(all)")
    }

    private func pay(
        _ id: String, _ database: NodeDatabase, _ forwards: Locked<Int>, _ fixture: TransactionFixture
    ) async -> Reply {
        do {
            let transactions = Transactions(try TransactionFixture.context(database, clock: fixture.clock))
            let reply: Reply
            switch try await transactions.take(id: id, binding: fixture.binding()) {
            case .alreadyTaken: reply = .usedBefore
            case .refused: reply = .refused
            case .taken(let taken):
                let result = await transactions.forwarding(taken) {
                    // A process that has died sends nothing.
                    if !database.isDead { forwards.withLock { $0 += 1 } }
                    return ((), UpstreamOutcome.answered(status: 201))
                }
                switch result {
                case .sent: reply = .paid
                case .sentBefore: reply = .usedBefore
                case .notRecorded: reply = .unavailable
                }
            }
            return database.isDead ? .none : reply
        } catch {
            return database.isDead ? .none : .unavailable
        }
    }
}
