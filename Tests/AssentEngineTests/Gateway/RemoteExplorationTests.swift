import AssentCore
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

/// Tries every combination of what can be lost between a gateway elsewhere, the engine and its database, with another
/// gateway of the group that comes in between.
@Suite("One approved payment through gateways elsewhere, and every way in which a message or a write can be lost")
struct RemoteExplorationTests {
    private struct Case: CustomStringConvertible {
        /// What happens to the take.
        let take: NodeDatabase.Fault
        /// Whether the gateway hears nothing of its first question, whatever came of that.
        let isReplyLost: Bool
        /// Before which of the gateway's two questions another one asks; `nil` for never.
        let other: Int?
        /// Whether the gateway dies when it has heard that it may send.
        let dies: Bool
        /// What happens to the record of the outcome, the first time.
        let outcome: NodeDatabase.Fault

        var description: String {
            "take \(take), reply lost \(isReplyLost), other \(other ?? -1), dies \(dies), outcome \(outcome)"
        }
    }

    private static let cases: [Case] = {
        let faults = NodeDatabase.Fault.allCases
        var cases: [Case] = []
        for take in faults {
            for isReplyLost in [false, true] {
                for other in [nil, 0, 1] {
                    cases.append(Case(take: take, isReplyLost: isReplyLost, other: other, dies: true, outcome: .none))
                    for outcome in faults {
                        cases.append(
                            Case(take: take, isReplyLost: isReplyLost, other: other, dies: false, outcome: outcome))
                    }
                }
            }
        }
        return cases
    }()

    @Test("It is sent once at most, a lost message spends nothing, and each end is the documented one")
    func explore() async throws {
        let fixture = try await TransactionFixture(limits: TransactionLimits(creations: 1_000_000))
        // Each is tried on the embedded database; a round trip takes longer.
        for index in stride(from: 0, to: Self.cases.count, by: TestDatabase.isPostgreSQL ? 7 : 1) {
            try await run(Self.cases[index], fixture)
        }
    }

    private func run(_ each: Case, _ fixture: TransactionFixture) async throws {
        let id = try await fixture.approved(try fixture.binding(maker: .group("edge")))
        let clean = NodeDatabase(fixture.database, [])
        let (own, other) = ("first-attempt-\(id)", "other-attempt-\(id)")
        var sent = 0
        if each.other == 0, await ask(id, other, clean, fixture) == true {
            sent += 1
            _ = await conclude(id, other, clean, fixture)
        }
        var answer = await ask(id, own, NodeDatabase(fixture.database, [each.take]), fixture)
        if each.isReplyLost { answer = nil }
        if each.other == 1, await ask(id, other, clean, fixture) == true {
            sent += 1
            _ = await conclude(id, other, clean, fixture)
        }
        // The same question again, to a node whose database is well.
        if answer == nil { answer = await ask(id, own, clean, fixture) }
        var reception: OutcomeReception?
        if answer == true, !each.dies {
            sent += 1
            reception = await conclude(id, own, NodeDatabase(fixture.database, [each.outcome]), fixture)
            if reception == nil { reception = await conclude(id, own, clean, fixture) }
        }
        fixture.clock.advance(by: Double(Transactions.forwardingLimit) + 1)
        _ = try await fixture.transactions.recordLostOutcomes()
        let found = try await fixture.transactions.outcome(id: id, session: fixture.ana)
        let takes = try await fixture.audited(.transactionTake, id).filter { $0 == "success -" }.count
        fixture.clock.advance(by: -Double(Transactions.forwardingLimit) - 1)

        var faults: [String] = []
        func expect(_ condition: Bool, _ fault: String) { if !condition { faults.append(fault) } }
        expect(sent <= 1, "sent \(sent) times")
        expect(takes == 1, "\(takes) records of a take")
        expect(answer != nil, "the second question has no answer")
        if each.other == nil { expect(answer == true, "approved, asked twice, and not granted") }
        if answer == true, !each.dies { expect(reception == .recorded, "the outcome was not heard") }
        let isUnknown = answer == true && each.dies
        expect(
            found?.outcome == (isUnknown ? .unknown : .answered(status: 201)),
            "on record is \(String(describing: found?.outcome))")
        #expect(faults.isEmpty, "\(each)")
    }

    /// Whether a gateway is granted the payment; `nil` when it hears nothing.
    private func ask(
        _ id: String, _ attempt: String, _ database: NodeDatabase, _ fixture: TransactionFixture
    ) async -> Bool? {
        do {
            let transactions = Transactions(try TransactionFixture.context(database, clock: fixture.clock))
            let result = try await transactions.take(
                id: id, binding: try fixture.binding(maker: .group("edge")),
                by: TransactionAttempt(attempt, client: "edge", question: Array(attempt.utf8)))
            return result.isTaken
        } catch {
            return nil
        }
    }

    private func conclude(
        _ id: String, _ attempt: String, _ database: NodeDatabase, _ fixture: TransactionFixture
    ) async -> OutcomeReception? {
        guard let context = try? TransactionFixture.context(database, clock: fixture.clock) else { return nil }
        return try? await Transactions(context).conclude(
            id: id, attempt: attempt, client: "edge", realm: "/alpha", .answered(status: 201))
    }
}
