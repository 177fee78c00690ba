import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

/// Tries every combination of faults of a node with another node's decision in between, on the real statements.
@Suite("One transaction to sign, two nodes, and every way in which a write can fail")
struct SigningExplorationTests {
    private struct Case: CustomStringConvertible {
        /// What happens to the first node's writes: the number, then the decision.
        let first: [NodeDatabase.Fault]
        /// Before which of these writes another decision comes over the second node; `nil` for never.
        let secondTries: Int?
        /// Before which of these writes the transaction's time is over.
        let expires: Int?

        var description: String {
            "first \(first), second before \(secondTries ?? -1), expired before \(expires ?? -1)"
        }
    }

    private static let cases: [Case] = {
        let faults = NodeDatabase.Fault.allCases
        return faults.flatMap { a in faults.map { [a, $0] } }.flatMap { first in
            [nil, 0, 1].flatMap { tries in
                [nil, 0, 1].map { Case(first: first, secondTries: tries, expires: $0) }
            }
        }
    }()

    @Test("It is decided once at most, and a repetition finds the receipt of what was decided")
    func explore() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        for each in Self.cases { try await run(each, fixture, container) }
    }

    private func run(_ each: Case, _ fixture: SigningStoreFixture, _ container: SigningContainerRecord) async throws {
        // A limit on open transactions is not what is tried here.
        let transaction = try await fixture.documents.create(
            fixture.transaction(number: "42", own: true), limits: SigningLimits())
        let decision = fixture.decision(transaction, container)
        let other = fixture.decision(transaction, container, .denied)
        let isExpired = Locked(false)
        let otherReply = Locked<String?>(nil)
        let first = NodeDatabase(fixture.base.database, each.first) { write in
            if write == each.expires {
                fixture.base.clock.advance(by: 181)
                isExpired.withLock { $0 = true }
            }
            guard write == each.secondTries else { return }
            let reply = await answer(other, container, fixture, fixture)
            otherReply.withLock { $0 = reply }
        }
        let acknowledged = await answer(decision, container, try fixture.node(first), fixture, by: first)
        // The device repeats the same bytes, with another proof.
        let repeated = await answer(decision, container, fixture, fixture)
        if isExpired.withLock({ $0 }) { fixture.base.clock.advance(by: -181) }

        let rows = try await fixture.base.database.run(
            .read("SELECT dh, receipt FROM signing_decisions WHERE txn = \(transaction.txn)"))
        let state = try await fixture.documents.find(transaction.txn)?.state
        let notes = try await fixture.audited(.signingDecide, transaction.txn).filter { $0 == "success -" }
        var faults: [String] = []
        func expect(_ condition: Bool, _ fault: String) { if !condition { faults.append(fault) } }
        expect(rows.count <= 1 && notes.count == rows.count, "\(rows.count) decisions, \(notes.count) records")
        let (dh, receipt) = (try rows.first?.text("dh"), try rows.first?.text("receipt"))
        expect((state == .approved) == (dh == decision.dh.text), "approved without the decision")
        expect((state == .denied) == (dh == other.dh.text), "denied without the decision")
        for reply in [acknowledged, repeated] {
            expect(reply == nil || (reply == receipt && dh == decision.dh.text), "a receipt that does not count")
        }
        let denied = otherReply.withLock { $0 }
        expect(denied == nil || (denied == receipt && dh == other.dh.text), "another receipt that does not count")
        expect(acknowledged == nil || repeated == acknowledged, "what was acknowledged is not found again")
        expect(dh != decision.dh.text || repeated == receipt, "a repetition does not find the receipt")
        expect(rows.count == 1 || isExpired.withLock { $0 }, "nobody has decided")
        #expect(faults.isEmpty, "\(each)")
    }

    /// As the server does: the look-up, the number, the decision. A process that has died answers nothing.
    private func answer(
        _ decision: SigningStoreFixture.MadeDecision, _ container: SigningContainerRecord, _ store: any SigningPart,
        _ fixture: SigningStoreFixture, by node: NodeDatabase? = nil
    ) async -> String? {
        do {
            switch try await store.decisions.turn(decision.txn, dh: decision.dh, container: container, at: fixture.now)
            {
            case .repeated(let receipt): return receipt
            case .open: break
            }
            if decision.effects.needsNumber {
                try await store.decisions.compareNumber(
                    "42", txn: decision.txn, dh: decision.dh, container: container, at: fixture.now)
            }
            let receipt = try await store.decisions.decide(
                decision, container: container, proof: fixture.proof(container.did), at: fixture.now)
            return node?.isDead == true ? nil : receipt
        } catch {
            return nil
        }
    }
}
