import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("What a decision must have, and whose it must be")
struct SigningDecisionGuardTests {
    @Test("An approval is signed by two keys, a refusal by the device key alone; nothing else is taken")
    func keys() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked()
        let document = try await device.fetch(txn, container)
        let approval = try await device.signed(try device.decision(document, status: "accept"), label: "payments")
        let denial = try await device.signed(try device.decision(document, status: "deny"), label: nil)
        func send(_ body: DecideBody) async throws -> String? {
            try await refusal { _ = try await device.decide(body, container) }
        }
        // The key that signs, without the device that has it.
        #expect(try await send(DecideBody(decision: approval.decision)) == "invalid_request")
        let needless = try await SignedMessage.sign(
            Possession(
                issuer: world.name, did: container.did, txn: txn, decision: .decision(denial.decision)),
            with: device.deviceKey
        ).compact
        #expect(try await send(DecideBody(decision: denial.decision, possession: needless)) == "invalid_request")
        #expect(try await world.state(txn) == "PENDING")
        let byItself = try await SignedMessage.sign(
            Possession(
                issuer: world.name, did: container.did, txn: txn, decision: .decision(approval.decision)),
            with: try device.key("payments")
        ).compact
        #expect(try await send(DecideBody(decision: approval.decision, possession: byItself)) == "bad_signature")
        #expect(try await world.state(txn) == "FAILED")
    }

    @Test("A blind refusal is for its own issuer, container and user, too", arguments: 0..<4)
    func blind(what: Int) async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked()
        let decision = Decision(
            issuer: what == 0 ? "https://other.example" : world.name,
            did: what == 1 ? SigningID(random: device.random) : container.did,
            sub: what == 2 ? "somebody" : container.sub, txn: txn, isBlind: true, status: "deny", effect: .deny,
            jti: SigningID(random: device.random))
        let body = try await device.signed(decision, label: nil)
        let code = try await refusal { _ = try await device.decide(body, container) }
        #expect(code == (what == 3 ? nil : "hash_mismatch"))
        #expect(try await world.state(txn) == (what == 3 ? "DENIED" : "PENDING"))
    }

    @Test("What is for one device of a user, another one neither sees nor refuses")
    func otherDevice() async throws {
        let world = try await SigningWorld()
        let (first, second) = (try await world.enrolled(), try await world.enrolled())
        var wish = world.wish()
        wish.did = first.container.did.text
        let txn = try await world.provider.parties.create(wish).txn
        #expect(try await second.device.list(second.container.did).isEmpty)
        #expect(try await second.device.status(second.container.did).pending == 0)
        #expect(try await refusal { _ = try await second.device.fetch(txn, second.container) } == "tx_unknown")
        let blind = try await second.device.signed(second.device.blind(txn, second.container), label: nil)
        #expect(try await refusal { _ = try await second.device.decide(blind, second.container) } == "tx_unknown")
        #expect(try await world.state(txn) == "PENDING")
        #expect(try await first.device.approve(txn, first.container).content.state == .approved)
    }

    @Test("A user who was deactivated approves nothing that was asked before, and may still refuse it")
    func deactivated() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (asked, refused) = (try await world.asked().txn, try await world.asked().txn)
        let document = try await device.fetch(asked, container)
        let approval = try await device.signed(try device.decision(document, status: "accept"), label: "payments")
        let denial = try await device.signed(device.blind(refused, container), label: nil)
        let (users, ana) = (Users(world.base.context), world.base.ana.user.id)
        try await users.setActive(false, userID: ana)
        #expect(try await refusal { _ = try await device.decide(approval, container) } == "container_blocked")
        #expect(try await world.state(asked) == "PENDING")
        #expect(try await device.decide(denial, container).content.state == .denied)
        try await users.setActive(true, userID: ana)
        #expect(try await device.decide(approval, container).content.state == .approved)
    }

    @Test("A user who was deactivated does not spend the one try of a number, right or wrong")
    func numberOfDeactivated() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, asked) = try await world.asked("numbered")
        let number = try #require(asked)
        let document = try await device.fetch(txn, container)
        let (users, ana) = (Users(world.base.context), world.base.ana.user.id)
        try await users.setActive(false, userID: ana)
        for guess in [number == "11" ? "12" : "11", number] {
            let decision = try device.decision(document, status: "accept", number: guess)
            let signed = try await device.signed(decision, label: "payments")
            #expect(try await refusal { _ = try await device.decide(signed, container) } == "container_blocked")
            #expect(try await world.state(txn) == "PENDING")
        }
        try await users.setActive(true, userID: ana)
        let decision = try device.decision(document, status: "accept", number: number)
        let signed = try await device.signed(decision, label: "payments")
        #expect(try await device.decide(signed, container).content.state == .approved)
    }

    @Test("A reason that the user gives reaches the relying party")
    func reason() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked()
        let document = try await device.fetch(txn, container)
        let report = try device.decision(document, status: "report", reason: "I have not ordered this")
        _ = try await device.decide(try await device.signed(report, label: nil), container)
        let view = try await world.provider.parties.view(txn.text, client: "shop")
        #expect(view.state == .reported && view.reason == "I have not ordered this")
    }
}

@Suite("Deciding, as statements: each condition by itself")
struct SigningDecisionConditionTests {
    private static func decide(
        _ fixture: SigningStoreFixture, _ decision: SigningStoreFixture.MadeDecision,
        _ container: SigningContainerRecord
    ) async throws -> SigningErrorCode? {
        let code = try await signingCode {
            _ = try await fixture.decisions.decide(
                decision, container: container, proof: fixture.proof(container.did), at: fixture.now)
        }
        // What is refused leaves nothing behind.
        #expect((try await fixture.decisions.find(of: decision.txn) == nil) == (code != nil))
        return code
    }

    private static func set(_ fixture: SigningStoreFixture, _ change: SQL) async throws {
        _ = try await fixture.base.database.run(SQLStatement("UPDATE \(change)"))
    }

    @Test("A key decides for its own container, and while it is active")
    func keys() async throws {
        let fixture = try await SigningStoreFixture()
        let (container, other) = (try await fixture.active(), try await fixture.active())
        let transaction = try await fixture.pending()
        var foreign = fixture.decision(transaction, container)
        foreign.effects.kid = "sign of \(other.did)"
        #expect(try await Self.decide(fixture, foreign, container) == .keyRetired)
        let mine = fixture.decision(transaction, container)
        for (state, code) in [("RETIRED", SigningErrorCode.keyRetired), ("PENDING", .keyRetired), ("ACTIVE", nil)] {
            try await Self.set(fixture, "signing_keys SET state = \(state) WHERE kid = \(mine.effects.kid.text)")
            #expect(try await Self.decide(fixture, mine, container) == code, "\(state)")
        }
    }

    @Test("A transaction is decided by its user's device, by the one that it names, and by the one that has scanned it")
    func transactions() async throws {
        let fixture = try await SigningStoreFixture()
        let (container, other) = (try await fixture.active(), try await fixture.active())
        let ben = fixture.base.ben.user.id
        for change: SQL in [
            "user_id = \(ben)", "user_id = NULL", "did = \(other.did.text)", "claimed_by = \(other.did.text)",
        ] {
            let transaction = try await fixture.pending()
            try await Self.set(fixture, "signing_transactions SET \(change) WHERE txn = \(transaction.txn.text)")
            for state in [SigningTransactionRecord.State.approved, .denied] {
                let decision = fixture.decision(transaction, container, state)
                #expect(try await Self.decide(fixture, decision, container) == .transactionUnknown, "\(change)")
            }
        }
        let named = try await fixture.documents.create(fixture.transaction(did: other.did), limits: SigningLimits())
        let code = try await signingCode {
            _ = try await fixture.decisions.turn(named.txn, dh: "dh", container: container, at: fixture.now)
        }
        #expect(code == .transactionUnknown)
        #expect(
            try await fixture.decisions.turn(named.txn, dh: "dh", container: other, at: fixture.now) == .open(named))
    }

    @Test("A refusal is taken from active and suspect containers, and from no others")
    func containers() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        for (state, code) in [
            ("BLOCKED", SigningErrorCode.containerBlocked), ("REVOKED", .containerRevoked), ("VOID", .enrolmentVoid),
            ("SUSPECT", nil), ("ACTIVE", nil),
        ] {
            let decision = fixture.decision(try await fixture.pending(), container, .denied)
            try await Self.set(fixture, "signing_containers SET state = \(state) WHERE did = \(container.did.text)")
            #expect(try await Self.decide(fixture, decision, container) == code, "\(state)")
        }
        fixture.base.clock.advance(by: 2000)
        let late = fixture.decision(try await fixture.pending(), container, .denied)
        #expect(try await Self.decide(fixture, late, container) == .keyExpired)
    }

    @Test("An evaluation is of the same container and slot, and of the last five minutes")
    func evaluations() async throws {
        let fixture = try await SigningStoreFixture()
        let (container, other) = (try await fixture.withSlot(), try await fixture.withSlot())
        _ = try await fixture.unlock(other)
        try await fixture.slots.confirm(fixture.confirmed(other, 1), of: other)
        let confirmed = fixture.confirmed(other, 1)
        func isFound(_ slot: PasswordSlot, _ container: SigningContainerRecord) async throws -> Bool {
            try await fixture.decisions.confirmed("unl 1", slot: slot, of: container.did, at: fixture.now) != nil
        }
        #expect(try await isFound(.signing, other))
        #expect(try await !isFound(.session, other))
        #expect(try await !isFound(.signing, container))
        func decide(_ container: SigningContainerRecord, _ slot: PasswordSlot) async throws -> SigningErrorCode? {
            var decision = fixture.decision(try await fixture.pending(), container)
            decision.effects.unlock = SpentEvaluation(
                ConfirmedTry(
                    did: container.did, slot: slot, generation: 0, n: 1, unl: confirmed.unl, evaluatedAt: 0,
                    confirmedAt: 0, evaluation: "", confirmation: ""))
            return try await Self.decide(fixture, decision, container)
        }
        #expect(try await decide(container, .signing) == .unlockRequired)
        #expect(try await decide(other, .session) == .unlockRequired)
        fixture.base.clock.advance(by: 300)
        #expect(try await !isFound(.signing, other))
        #expect(try await decide(other, .signing) == .unlockRequired)
        fixture.base.clock.advance(by: -1)
        #expect(try await isFound(.signing, other))
        #expect(try await decide(other, .signing) == nil)
    }

    @Test("What is decided stays so: a bad signature that comes later fails nothing, and a client takes nothing back")
    func decided() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        for state in [SigningTransactionRecord.State.approved, .canceled] {
            let transaction = try await fixture.pending(client: "shop")
            let decision = fixture.decision(transaction, container, state)
            #expect(try await Self.decide(fixture, decision, container) == nil)
            try await fixture.decisions.fail(txn: transaction.txn, because: .badSignature, container: container)
            let canceled = try await signingCode {
                try await fixture.documents.cancel(transaction.txn, client: "shop", at: fixture.now)
            }
            #expect(canceled == .alreadyDecided)
            #expect(try await fixture.documents.find(transaction.txn)?.state == state)
            #expect(try await fixture.audited(.signingDecide, transaction.txn) == ["success -"])
            #expect(try await fixture.audited(.signingCancel, transaction.txn).isEmpty)
        }
    }

    @Test("What a policy asks for, and what a device has begun, belong to no client, whatever it is called")
    func clients() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let made = try await fixture.documents.create(
            fixture.transaction(client: "journey", policy: "policy"), limits: SigningLimits())
        let (provider, txn) = (SigningProvider(fixture.base.context, settings: fixture.settings), made.txn.text)
        #expect(try await refusal { _ = try await provider.parties.view(txn, client: "journey") } == "tx_unknown")
        #expect(try await refusal { try await provider.parties.cancel(txn, client: "journey") } == "tx_unknown")
        #expect(try await Self.decide(fixture, fixture.decision(made, container), container) == nil)
        #expect(
            try await refusal { _ = try await provider.evidence.bundle(txn, for: .client("journey")) } == "tx_unknown")
    }
}
