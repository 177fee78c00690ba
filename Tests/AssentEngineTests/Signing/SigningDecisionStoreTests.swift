import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Deciding, as statements")
struct SigningDecisionStoreTests {
    private static func decide(
        _ fixture: SigningStoreFixture, _ decision: SigningStoreFixture.MadeDecision,
        _ container: SigningContainerRecord,
        proof: SpentProof? = nil, store: (any SigningPart)? = nil
    ) async throws -> SigningErrorCode? {
        try await signingCode {
            _ = try await (store ?? fixture).decisions.decide(
                decision, container: container, proof: proof ?? fixture.proof(container.did), at: fixture.now)
        }
    }

    @Test(
        "A decision ends the transaction; the same one finds its receipt, another is told so",
        arguments: [
            SigningTransactionRecord.State.approved, .denied, .reported, .canceled,
        ])
    func decide(state: SigningTransactionRecord.State) async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let transaction = try await fixture.pending()
        let decision = fixture.decision(transaction, container, state)
        let (store, now) = (fixture, fixture.now)
        let proof = fixture.proof(container.did)
        #expect(
            try await store.decisions.decide(decision, container: container, proof: proof, at: now) == decision.receipt)
        let known = try #require(try await store.documents.find(transaction.txn))
        #expect(known.state == state && known.decidedBy == container.did && known.status == "accept")
        #expect(try await fixture.audited(.signingDecide, transaction.txn) == ["success -"])
        let later = transaction.expiresAt + 1000
        #expect(
            try await store.decisions.turn(transaction.txn, dh: decision.dh, container: container, at: later)
                == .repeated(receipt: decision.receipt))
        #expect(
            try await signingCode {
                _ = try await store.decisions.turn(transaction.txn, dh: "x", container: container, at: now)
            } == .alreadyDecided)
        let second = fixture.decision(transaction, container, .denied)
        #expect(try await Self.decide(fixture, second, container) == .alreadyDecided)
        let again = fixture.decision(transaction, container, state, dh: decision.dh)
        #expect(
            try await store.decisions.decide(again, container: container, proof: fixture.proof(container.did), at: now)
                == decision.receipt)
        let other = try await fixture.active()
        #expect(
            try await signingCode {
                _ = try await store.decisions.turn(transaction.txn, dh: decision.dh, container: other, at: now)
            } == .alreadyDecided)
        let audit = try await fixture.base.database.run(
            .read("SELECT id FROM audit WHERE id = \(decision.effects.auditID)"))
        #expect(audit.count == 1)
    }

    @Test("Nothing is decided after the end, with a retired key, a spent proof, or by a container that may not")
    func refusals() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let transaction = try await fixture.pending()
        let (store, now) = (fixture, fixture.now)
        let approve = fixture.decision(transaction, container)
        let proof = fixture.proof(container.did)
        _ = try await store.devices.update(container, name: "a", pushID: nil, properties: nil, proof: proof, at: now)
        #expect(try await Self.decide(fixture, approve, container, proof: proof) == .replay)
        let database = fixture.base.database
        var foreign = fixture.decision(transaction, container)
        foreign.effects.kid = "sign of another"
        #expect(try await Self.decide(fixture, foreign, container) == .keyRetired)
        _ = try await database.run(SQLStatement("UPDATE signing_containers SET approvals_from = \(now + 60)"))
        #expect(try await Self.decide(fixture, approve, container) == .approvalsNotYet)
        _ = try await database.run(SQLStatement("UPDATE signing_containers SET approvals_from = 0"))
        for (state, code) in [
            ("SUSPECT", SigningErrorCode.containerSuspect), ("BLOCKED", .containerBlocked),
            ("REVOKED", .containerRevoked), ("VOID", .enrolmentVoid), ("UNCONFIRMED", .enrolmentVoid),
        ] {
            _ = try await database.run(SQLStatement("UPDATE signing_containers SET state = \(state)"))
            #expect(try await Self.decide(fixture, approve, container) == code, "\(state)")
        }
        _ = try await database.run(SQLStatement("UPDATE signing_containers SET state = 'ACTIVE'"))
        let numbered = try await fixture.pending(number: "42")
        #expect(try await Self.decide(fixture, fixture.decision(numbered, container), container) == .matchUsed)
        #expect(try await store.documents.find(transaction.txn)?.state == .pending)
        fixture.base.clock.advance(by: 180)
        #expect(try await Self.decide(fixture, approve, container) == .transactionExpired)
        fixture.base.clock.advance(by: 2000)
        let late = try await fixture.pending()
        #expect(try await Self.decide(fixture, fixture.decision(late, container), container) == .keyExpired)
        #expect(try await database.run(.read("SELECT txn FROM signing_decisions")).isEmpty)
    }

    @Test(
        "While nobody knows whether a decision is stored there is no receipt, though it can be read; it is found later")
    func outcomeUnknown() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let transaction = try await fixture.pending()
        let decision = fixture.decision(transaction, container)
        let node = try fixture.node(NodeDatabase(fixture.base.database, [.doneUnknown]))
        // What the primary shows after a wait that was cut short, no standby may have.
        await #expect(throws: StoreError(.outcomeUnknown, "")) {
            _ = try await node.decisions.decide(
                decision, container: container, proof: fixture.proof(container.did), at: fixture.now)
        }
        #expect(
            try await fixture.decisions.turn(transaction.txn, dh: decision.dh, container: container, at: fixture.now)
                == .repeated(receipt: decision.receipt))
    }

    @Test("A suspect container may refuse")
    func suspect() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let transaction = try await fixture.pending()
        _ = try await fixture.base.database.run(SQLStatement("UPDATE signing_containers SET state = 'SUSPECT'"))
        #expect(try await Self.decide(fixture, fixture.decision(transaction, container, .reported), container) == nil)
    }

    @Test("Of a hundred decisions at once on two nodes one decides")
    func race() async throws {
        let fixture = try await SigningStoreFixture()
        let second = try await TestDatabase.location(fixture.base.path).open(clock: fixture.base.clock)
        let other = try fixture.node(second)
        let container = try await fixture.active()
        let transaction = try await fixture.pending()
        let decided = try await withThrowingTaskGroup(of: Bool.self) { group in
            for task in 0..<100 {
                group.addTask {
                    let decision = fixture.decision(
                        transaction, container, task.isMultiple(of: 3) ? .denied : .approved)
                    return try await Self.decide(
                        fixture, decision, container, store: task.isMultiple(of: 2) ? fixture : other) == nil
                }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(decided == 1)
        #expect(
            try await fixture.audited(.signingDecide, transaction.txn).filter { $0 == "success -" }.count == 1)
        try await second.close()
    }

    @Test("Of a hundred numbers at once on two nodes one is compared")
    func numberRace() async throws {
        let fixture = try await SigningStoreFixture()
        let second = try await TestDatabase.location(fixture.base.path).open(clock: fixture.base.clock)
        let other = try fixture.node(second)
        let container = try await fixture.active()
        let transaction = try await fixture.pending(number: "42")
        let results = try await withThrowingTaskGroup(of: SigningErrorCode?.self) { group in
            for task in 0..<100 {
                group.addTask {
                    let store: any SigningPart = task.isMultiple(of: 2) ? fixture : other
                    return try await signingCode {
                        try await store.decisions.compareNumber(
                            task < 10 ? "0\(task)" : "\(task)", txn: transaction.txn, dh: "dh \(task)",
                            container: container, at: fixture.now)
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.filter { $0 == nil || $0 == .matchWrong }.count == 1)
        #expect(results.allSatisfy { [nil, .matchWrong, .matchUsed, .transactionFailed].contains($0) })
        try await second.close()
    }

    @Test("The decision that has tried the number decides, and may be repeated; a wrong number ends the transaction")
    func number() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let (store, now) = (fixture, fixture.now)
        func compare(_ number: String, _ transaction: SigningTransactionRecord, dh: SigningHash) async throws
            -> SigningErrorCode?
        {
            try await signingCode {
                try await store.decisions.compareNumber(
                    number, txn: transaction.txn, dh: dh, container: container, at: now)
            }
        }
        let right = try await fixture.pending(number: "42")
        let decision = fixture.decision(right, container)
        #expect(try await compare("42", right, dh: decision.dh) == nil)
        #expect(try await compare("42", right, dh: decision.dh) == nil)
        #expect(try await compare("42", right, dh: "another") == .matchUsed)
        #expect(try await Self.decide(fixture, fixture.decision(right, container), container) == .matchUsed)
        #expect(try await Self.decide(fixture, decision, container) == nil)
        let wrong = try await fixture.pending(number: "42")
        #expect(try await compare("41", wrong, dh: "a") == .matchWrong)
        #expect(try await compare("42", wrong, dh: "a") == .transactionFailed)
        #expect(try await store.documents.find(wrong.txn)?.state == .failed)
        #expect(try await fixture.audited(.signingDecide, wrong.txn).first == "failed match_wrong")
    }

    @Test("Deciding and revoking at the same moment: whoever is first wins, and the other one is told")
    func revokeRace() async throws {
        let fixture = try await SigningStoreFixture()
        for _ in 0..<20 {
            let container = try await fixture.active()
            let transaction = try await fixture.pending()
            let decision = fixture.decision(transaction, container)
            async let revoked = fixture.devices.change(container, .revoke, by: "user", at: fixture.now)
            async let code = Self.decide(fixture, decision, container)
            #expect(try await revoked)
            let refusal = try await code
            #expect(refusal == nil || refusal == .containerRevoked)
            let state = try await fixture.documents.find(transaction.txn)?.state
            #expect(state == (refusal == nil ? .approved : .pending))
        }
    }
}
