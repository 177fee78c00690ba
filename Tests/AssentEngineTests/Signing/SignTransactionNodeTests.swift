import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("A journey that has the user sign on a device")
struct SignTransactionNodeTests {
    private typealias World = SigningJourneyWorld

    @Test(
        "An address of a private network, which may be a proxy's, is not shown as the place where a request began",
        arguments: [
            ("10.0.0.1", false), ("127.0.0.1", false), ("172.31.255.255", false), ("192.168.1.1", false),
            ("169.254.1.1", false), ("100.64.0.1", false), ("fd00:0000:0000:0001::/64", false),
            ("fe80:0000:0000:0000::/64", false), ("0000:0000:0000:0000::/64", false), ("172.32.0.1", true),
            ("192.0.2.7", true), ("100.128.0.1", true), ("2001:0db8:0000:0000::/64", true),
        ])
    func origin(address: String, isShown: Bool) {
        let origin = SigningQuestions.origin(address)
        #expect(isShown ? origin?.address == address && origin?.place == nil : origin == nil)
    }

    @Test("A device signs the lines that the page has shown, in the same language")
    func language() async throws {
        let world = try await World()
        let (device, container) = try await world.enrolled()
        let line = DisplayLine(label: LocalizedText("To", byLanguage: ["en": "To", "de": "An"]), value: "Bob")
        let id = try await world.journeys.transaction(world.session, journey: "Sign", display: [line])
        let page = try await world.begin(id, languages: ["de"])
        #expect(page.content.prompts.contains(.textOutput("An: Bob")))
        let document = try await device.fetch(try await world.signing().txn, container).content
        #expect(document.body.locale == "de" && document.body.fields.map(\.label) == ["An"])
        #expect(document.body.fields.map(\.display) == ["Bob"])
    }

    @Test("A device is told of a body of which nothing is shown")
    func nothingShown() async throws {
        let world = try await World()
        let (device, container) = try await world.enrolled()
        let id = try await world.journeys.transaction(world.session, journey: "Sign", display: [])
        _ = try await world.begin(id)
        let document = try await device.fetch(try await world.signing().txn, container).content
        #expect(document.body.fields.map(\.display) == ["not shown here"])
    }

    @Test("The approval completes the policy's transaction, in one step and once")
    func approve() async throws {
        let world = try await World()
        let (device, container) = try await world.enrolled()
        let id = try await world.journeys.transaction(world.session, journey: "Sign")
        let page = try await world.begin(id)
        #expect(page.types.prefix(2) == ["MetadataCallback", "TextOutputCallback"])
        #expect(page.types.last == "PollingWaitCallback")
        let asked = try await world.signing()
        let number = try #require(asked.matchNumber)
        guard case .custom(let waiting) = page.content.prompts.last else { throw TestRefusal("it does not wait") }
        #expect(waiting.outputs["number"]?.string == number)
        #expect(waiting.outputs["expiresAt"]?.integer == asked.expiresAt)
        #expect(waiting.outputs["message"]?.string == "Confirm on your device.\nNumber: \(number)")
        let txn = asked.txn
        let document = try await device.fetch(txn, container).content
        #expect(document.body.fields.map(\.display) == ["200.00 EUR", "Bob"])
        #expect(document.body.relyingParty.id == "journey")
        #expect(document.body.origin?.place == nil && document.body.origin?.address == "192.0.2.7")
        #expect(world.heard.waiting.withLock { $0.map(\.txn) } == [asked.txn.text])
        _ = try await device.approve(txn, container, number: number)
        #expect(try await world.journeys.state(id) == "IN_PROGRESS")
        #expect(try await world.poll(page).token() == world.session)
        #expect(try await world.journeys.state(id) == "COMPLETED")
        let taken = try await world.journeys.database.run(.read("SELECT taken_by FROM signing_transactions"))
        #expect(try taken.map { try $0.text("taken_by") } == [id])
        let audit = try await AuditLog(world.journeys.context).records(transactionID: id)
        #expect(audit.count { $0.event == .signingTake } == 1)
    }

    @Test("A user who was asked twice because a step could not be stored, and has approved both, has approved once")
    func askedTwice() async throws {
        let world = try await World()
        let (device, container) = try await world.enrolled()
        let id = try await world.journeys.transaction(world.session, journey: "Sign")
        let page = try await world.begin(id)
        let first = try await world.signing()
        let approval = PendingApproval(
            id: id, journey: "Sign", method: nil, resource: "", contentType: nil, bodySHA256: nil, display: [],
            expiresAt: world.provider.now + 60)
        let again = try #require(try await world.provider.questions.ask(approval, template: "confirm", from: nil))
        _ = try await device.approve(first.txn, container, number: first.matchNumber)
        _ = try await device.approve(try #require(SigningID(text: again.txn)), container, number: again.number)
        #expect(try await world.poll(page).token() == world.session)
        #expect(try await world.journeys.state(id) == "COMPLETED")
        let taken = try await world.journeys.database.run(.read("SELECT taken_by FROM signing_transactions"))
        #expect(try taken.map { try $0.text("taken_by") } == [id, id])
    }

    @Test("A no on the device, and a user without a device complete nothing")
    func refusals() async throws {
        let world = try await World()
        let none = try await world.journeys.transaction(world.session, journey: "Sign")
        await #expect(throws: EngineError(.noDevice)) { try await world.begin(none) }
        let (device, container) = try await world.enrolled()
        let denied = try await world.journeys.transaction(world.session, journey: "Sign")
        let page = try await world.begin(denied)
        let txn = try await world.signing().txn
        _ = try await device.decide(try await device.signed(device.blind(txn, container), label: nil), container)
        await #expect(throws: EngineError(.declined)) { try await world.poll(page) }
        #expect(try await world.journeys.state(denied) == "DECLINED")
        let mistaken = try await world.journeys.transaction(world.session, journey: "Sign")
        let waiting = try await world.begin(mistaken)
        let asked = try await world.signing()
        let other = asked.txn
        await #expect(throws: TestRefusal.self) {
            try await device.approve(other, container, number: asked.matchNumber == "10" ? "11" : "10")
        }
        await #expect(throws: EngineError(.declined)) { try await world.poll(waiting) }
        let audited = try await world.journeys.audited()
        #expect(audited.contains("refused declined") && audited.contains("refused failedOnDevice"), "\(audited)")
    }

    @Test("A device that may not approve is none for a journey: blocked, suspect, new or expired")
    func unusable() async throws {
        let world = try await World()
        _ = try await world.enrolled()
        let now = world.provider.now
        func set(_ change: SQL) async throws {
            _ = try await world.journeys.database.run(SQLStatement("UPDATE signing_containers SET \(change)"))
        }
        let good: SQL = "state = 'ACTIVE', approvals_from = \(now), expires_at = \(now + 3600)"
        for change: SQL in [
            "state = 'BLOCKED'", "state = 'SUSPECT'", "approvals_from = \(now + 60)", "expires_at = \(now)",
        ] {
            try await set(good)
            try await set(change)
            let id = try await world.journeys.transaction(world.session, journey: "Sign")
            await #expect(throws: EngineError(.noDevice), "\(change)") { try await world.begin(id) }
        }
        let asked = try await world.journeys.database.run(.read("SELECT txn FROM signing_transactions"))
        #expect(asked.isEmpty)
        try await set(good)
        _ = try await world.begin(try await world.journeys.transaction(world.session, journey: "Sign"))
    }

    @Test("A device without a key for one of the ways to approve hears of nothing, so a journey has none to ask")
    func missingKey() async throws {
        func status(_ name: String, _ effect: DecisionEffect, keys: [String] = []) -> SigningTemplate.Status {
            SigningTemplate.Status(name: name, label: LocalizedText("To \(name)"), effect: effect, keys: keys)
        }
        let statuses = [
            status("accept", .approve, keys: ["payments"]), status("urgent", .approve, keys: ["urgent"]),
            status("deny", .deny),
        ]
        let world = try await World { settings in
            settings.keys.append(OfferedKey(usage: .sign, label: "urgent", policy: SigningSettings.policyID))
            settings.templates["confirm"]?.statuses = statuses
        }
        let (device, container) = try await world.enrolled()
        _ = try await world.begin(try await world.journeys.transaction(world.session, journey: "Sign"))
        func listed() async throws -> Int {
            let list: TransactionList = try await device.askSealed(
                "transactions/list", container.did, ListBody(wait: 0))
            return list.tickets.count
        }
        #expect(try await listed() == 1)
        // It was enrolled before there was this key.
        _ = try await world.journeys.database.run(
            SQLStatement("UPDATE signing_keys SET state = 'RETIRED' WHERE label = 'urgent'", expecting: .exactly(1)))
        #expect(try await listed() == 0)
        let id = try await world.journeys.transaction(world.session, journey: "Sign")
        await #expect(throws: EngineError(.noDevice)) { try await world.begin(id) }
    }

    @Test("When its time is over, the journey goes its own way, and nothing is approved any more")
    func expired() async throws {
        let world = try await World()
        let (device, container) = try await world.enrolled()
        let id = try await world.journeys.transaction(world.session, journey: "Sign")
        let page = try await world.begin(id)
        let asked = try await world.signing()
        let document = try await device.fetch(asked.txn, container)
        let approval = try await device.signed(
            try device.decision(document, status: "accept", number: asked.matchNumber), label: "payments")
        world.journeys.clock.advance(by: 60)
        let late = try Page(try await world.poll(page))
        #expect(late.types.last == "ConfirmationCallback")
        #expect(try await refusal { _ = try await device.decide(approval, container) } == "tx_expired")
        await #expect(throws: EngineError(.approvalExpired)) { try await world.poll(late) }
        #expect(try await world.journeys.state(id) != "COMPLETED")
    }

    @Test(
        "A journey says why nothing was approved, also where that is a success on the wire, as AM has it",
        arguments: [FailedTransaction.failure, .success])
    func reasons(failedTransaction: FailedTransaction) async throws {
        let world = try await World(failedTransaction: failedTransaction)
        func told(_ reply: () async throws -> AuthenticateReply) async throws -> EngineError.Code? {
            do {
                let success = try await reply().success()
                #expect(failedTransaction == .success && success.token == world.session && !success.isNewSession)
                return success.failure
            } catch let error as EngineError {
                #expect(failedTransaction == .failure)
                return error.code
            }
        }
        func transaction() async throws -> String {
            try await world.journeys.transaction(world.session, journey: "Sign")
        }
        let none = try await transaction()
        #expect(try await told { try await world.answer(none) } == .noDevice)
        #expect(try await world.stage(none) == .noDevice)

        let (device, container) = try await world.enrolled()
        let first = try await transaction()
        let denied = try await world.begin(first)
        let no = try await world.signing().txn
        _ = try await device.decide(try await device.signed(device.blind(no, container), label: nil), container)
        #expect(try await told { try await world.poll(denied) } == .declined)
        #expect(try await world.stage(first) == .declined)

        let second = try await transaction()
        let wrong = try await world.begin(second)
        let asked = try await world.signing()
        let txn = asked.txn
        let other = asked.matchNumber == "11" ? "12" : "11"
        #expect(try await refusal { _ = try await device.approve(txn, container, number: other) } == "match_wrong")
        #expect(try await told { try await world.poll(wrong) } == .declined)
        #expect(try await world.stage(second) == .failed)

        let id = try await transaction()
        let waiting = try await world.begin(id)
        world.journeys.clock.advance(by: 60)
        let late = try Page(try await world.poll(waiting))
        #expect(try await told { try await world.poll(late) } == .approvalExpired)
        #expect(try await world.stage(id) == .unanswered)
        #expect(try await world.journeys.state(id) != "COMPLETED")
    }

    @Test("An approval that was made for another transaction, changed, or used before completes nothing")
    func binding() async throws {
        let world = try await World()
        let (device, container) = try await world.enrolled()
        for change: SQL in [
            "req = 'another'", "policy_transaction = 'another'", "taken_by = 'another'", "state = 'DENIED'",
        ] {
            let id = try await world.journeys.transaction(world.session, journey: "Sign")
            let page = try await world.begin(id)
            let asked = try await world.journeys.database.run(
                .read("SELECT * FROM signing_transactions WHERE policy_transaction = \(id)"))
            let transaction = try SigningTransactionRecord(try #require(asked.first))
            let txn = transaction.txn
            _ = try await device.approve(txn, container, number: transaction.matchNumber)
            if change != "state = 'DENIED'" {
                // Changed after the node has looked: what decides is the statement at the end.
                let approval = PendingApproval(
                    id: id, journey: "Sign", method: nil, resource: "", contentType: nil, bodySHA256: nil, display: [],
                    expiresAt: 0)
                _ = try await world.journeys.database.run(
                    SQLStatement("UPDATE signing_transactions SET \(change) WHERE txn = \(txn.text)"))
                await #expect(throws: StoreError(.unexpectedCount, "")) {
                    _ = try await world.journeys.database.run(try await world.provider.questions.taking(approval))
                }
            }
            _ = try await world.journeys.database.run(
                SQLStatement("UPDATE signing_transactions SET \(change) WHERE txn = \(txn.text)"))
            await #expect(throws: EngineError.self) { try await world.poll(page).token() }
            #expect(try await world.journeys.state(id) != "COMPLETED")
        }
    }
}
