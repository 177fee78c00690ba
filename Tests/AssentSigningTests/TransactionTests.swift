import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import AssentVault
import Foundation
import Testing

@Suite("Signing device: transactions")
struct TransactionTests {
    let scene: Scene
    let device: SigningDevice
    let container: SigningContainer

    init() async throws {
        scene = try Scene()
        device = scene.device()
        container = try await scene.enrolled(device)
    }

    @Test("From the list to the receipt: what is shown is what is signed")
    func approve() async throws {
        _ = await scene.server.ask()
        let ids = try await container.transactionIDs(wait: 25)
        #expect(ids.count == 1)
        let calls = await scene.server.asked.count
        let info = try await device.retrieveTransactionInfo(ids[0])
        #expect(await scene.server.asked.count == calls)
        #expect(info.container.id == container.id && info.isVerified && !info.isClaim)
        #expect(info.expiresAt == Date(timeIntervalSince1970: 1400))
        let transaction = try await info.transaction()
        #expect(
            transaction.displayed.title == "Confirm payment" && transaction.displayed.relyingParty == "Example Shop")
        #expect(transaction.displayed.text == "Pay 200.00 EUR to Bob" && transaction.displayed.warning == nil)
        #expect(transaction.displayed.fields == [DisplayField(label: "To", value: "Bob")])
        #expect(transaction.allowedStatuses.map(\.label) == ["Approve", "Decline", "That was not me"])
        #expect(transaction.allowedStatuses.map(\.needsNumber) == [true, false, false])
        #expect(!transaction.isCancelable && transaction.kind == .transaction)
        let receipt = try await transaction.setStatus("accept", number: "42")
        #expect(receipt.effect == .approve && receipt.status == "accept" && receipt.transactionID == transaction.id)
        #expect(await scene.server.transactions[0].effect == "approve")
        #expect(try await container.transactionIDs().isEmpty)
        #expect(await !scene.store.names().contains { $0.hasPrefix("signing.decision.") })
    }

    @Test("The app is given every text that its user's signature covers, and no other one")
    func displayed() async throws {
        await scene.server.edit("document") {
            $0["warning"] = "New payee"
            $0["origin"] = ["place": "Vienna", "address": "192.0.2.7"]
            $0["fields"] = [
                ["id": "to", "label": "To", "type": "party", "value": "Bob", "display": "Bob"],
                ["id": "for", "label": "For", "type": "text", "value": "Rent", "display": "Rent"],
            ]
        }
        let transaction = try await scene.fetched(container, on: device)
        let (shown, status) = (transaction.displayed, transaction.allowedStatuses[0])
        var texts = [shown.relyingParty, shown.title, shown.text ?? "", shown.warning ?? ""]
        texts += [shown.place ?? "", shown.address ?? ""]
        for field in shown.fields { texts += [field.label, field.value] }
        texts += [status.label, "42"]
        #expect(
            texts == [
                "Example Shop", "Confirm payment", "Pay 200.00 EUR to Bob", "New payee", "Vienna", "192.0.2.7", "To",
                "Bob", "For", "Rent", "Approve", "42",
            ])
        try await transaction.setStatus(status.name, number: "42")
        let compact = try #require(await scene.server.decisions.first)
        #expect(try UnverifiedMessage<Decision>(compact).content.displayed == SigningHash.displayed(texts))
    }

    @Test("Given up: a transaction that may be canceled is, once, and that is no answer that the app offers")
    func cancel() async throws {
        await scene.server.edit("document") { document in
            let statuses = document["statuses"]?.array ?? []
            let keys = statuses.last?["kids"] ?? []
            let later: JSONValue = [
                "name": "later", "label": "Not now", "effect": "cancel", "kids": keys, "reason": "optional",
            ]
            document["statuses"] = .array(statuses + [later])
        }
        let transaction = try await scene.fetched(container, on: device)
        #expect(transaction.isCancelable && !transaction.allowedStatuses.contains { $0.effect == .cancel })
        let receipt = try await transaction.cancel(.userCancel, reason: "no time")
        #expect(receipt.effect == .cancel && receipt.status == "later" && receipt.transactionID == transaction.id)
        #expect(await scene.server.transactions.map(\.effect) == ["cancel"])
        let compact = try #require(await scene.server.decisions.first)
        #expect(try UnverifiedMessage<Decision>(compact).content.reason == "no time")
        #expect(try await transaction.cancel(.userCancel, reason: "no time") == receipt)
        await #expect(throws: SigningError(.alreadyDecided)) { try await transaction.setStatus("accept", number: "42") }
        #expect(try await container.transactionIDs().isEmpty)
    }

    @Test("Decline, report and a reason")
    func refuse() async throws {
        let one = try await scene.fetched(container, on: device)
        #expect(try await one.setStatus("deny").effect == .deny)
        let two = try await scene.fetched(container, on: device)
        #expect(try await two.cancel(.notifySuspicious, reason: "not me").effect == .report)
        let three = try await scene.fetched(container, on: device)
        await #expect(throws: SigningError(.unsupportedOperation)) { try await three.cancel(.userCancel) }
        #expect(await scene.server.transactions.map(\.effect) == ["deny", "report", nil])
    }

    @Test("A transaction is refused or reported without its document")
    func blind() async throws {
        for (index, effect) in ["deny", "report"].enumerated() {
            let txn = await scene.server.ask()
            let info = try await device.retrieveTransactionInfo(scene.server.ticket(txn))
            let receipt = try await index == 0 ? info.deny() : info.report(reason: "not me")
            #expect(receipt.effect.rawValue == effect)
            #expect(await scene.server.transactions[index].document == nil)
        }
        #expect(await !scene.server.asked.contains("/device/transactions/fetch"))
    }

    @Test("What the server would refuse is not signed")
    func arguments() async throws {
        let transaction = try await scene.fetched(container, on: device)
        let calls = await scene.server.asked.count
        for (status, number, reason) in [
            ("accept", nil, nil), ("accept", "4", nil), ("accept", "4２", nil), ("accept", "abc", nil),
            ("deny", "42", nil), ("deny", nil, "because"), ("other", nil, nil), ("Accept", "42", nil),
            ("report", nil, "a\u{202E}b"), ("report", nil, ""),
        ] as [(String, String?, String?)] {
            await #expect(throws: SigningError(.invalidArgument), "\(status)") {
                try await transaction.setStatus(status, number: number, reason: reason)
            }
        }
        #expect(await scene.server.asked.count == calls)
    }

    @Test(
        "A document that was changed, or breaks a rule, is not shown",
        arguments: [
            ("aud", .string(SigningID(random: SystemRandom()).text)), ("iss", "https://other.example"),
            ("sub", "mallory"), ("txn", .string(SigningID(random: SystemRandom()).text)), ("v", 2),
            ("title", "a\u{202E}b"), ("iat", 100), ("statuses", []), ("kind", "authentication"), ("extra", 1),
        ] as [(String, JSONValue)])
    func documents(name: String, value: JSONValue) async throws {
        await scene.server.edit("document") { $0[name] = value }
        let txn = await scene.server.ask()
        let info = try await device.retrieveTransactionInfo(scene.server.ticket(txn))
        let error = await #expect(throws: SigningError.self) { try await info.transaction() }
        #expect(
            [.documentRefused, .serverAuthentication, .versionUnsupported].contains(error?.code),
            "\(String(describing: error))")
        #expect(await scene.server.transactions[0].decision == nil)
    }

    @Test("A document by another key, or by the right key for another fetch, is refused")
    func forged() async throws {
        let txn = await scene.server.ask()
        let info = try await device.retrieveTransactionInfo(scene.server.ticket(txn))
        await scene.server.sign("document", with: try .generate(.es256))
        await #expect(throws: SigningError(.serverAuthentication)) { try await info.transaction() }
        await scene.server.sign("document", with: nil)
        _ = try await scene.fetched(container, on: device)
        let old = try #require(await scene.server.sent["/device/transactions/fetch"]?.last)
        await scene.server.replay("/device/transactions/fetch", old)
        let other = await scene.server.ask()
        let second = try await device.retrieveTransactionInfo(scene.server.ticket(other))
        await #expect(throws: SigningError(.serverAuthentication)) { try await second.transaction() }
    }

    @Test("A document about another text than the one that the device was given is refused")
    func otherText() async throws {
        let given = "I have read the contract of 2026"
        func about(_ text: String, asked: String = given, kind: String = "record") -> ScriptedServer.Edit {
            { document in
                document["match"] = nil
                document["kind"] = .string(kind)
                document["text"] = .string(text)
                document["req"] = .string(SigningHash.details(asked).text)
            }
        }
        let other = "I have sold the house"
        for lie in [about(other), about(other, asked: other), about(given, asked: other)] {
            await scene.server.edit("document", lie)
            await #expect(throws: SigningError(.documentRefused)) { try await container.record(given) }
        }
        await scene.server.edit("document", about(given, kind: "transaction"))
        await #expect(throws: SigningError(.documentRefused)) { try await container.record(given) }
        await scene.server.edit("document", about(given))
        #expect(try await container.record(given).displayed.text == given)
    }

    @Test("A receipt that is for another decision, container or user, or by another key, counts as none")
    func receipts() async throws {
        let edits: [(String, ScriptedServer.Edit)] = [
            ("dh", { $0["dh"] = .string(SigningHash.decision("other").text) }),
            ("aud", { $0["aud"] = .string(SigningID(random: SystemRandom()).text) }),
            ("txn", { $0["txn"] = .string(SigningID(random: SystemRandom()).text) }),
            ("status", { $0["status"] = "deny" }), ("sub", { $0["sub"] = "mallory" }),
            ("iss", { $0["iss"] = "https://other.example" }), ("iat", { $0["iat"] = 90_001 }),
            (
                "effect",
                {
                    $0["effect"] = "deny"; $0["state"] = "DENIED"
                }
            ),
        ]
        for (name, edit) in edits {
            await scene.server.edit("receipt", edit)
            let transaction = try await scene.fetched(container, on: device)
            await #expect(throws: SigningError(.serverAuthentication), "\(name)") {
                try await transaction.setStatus("accept", number: "42")
            }
            // The decision is kept: it may have counted.
            #expect(await scene.store.names().contains { $0.hasPrefix("signing.decision.") })
        }
    }

    @Test("A decision is sent again with the same bytes, and another one is not signed beside it")
    func repetition() async throws {
        let transaction = try await scene.fetched(container, on: device)
        await scene.server.edit("receipt") { $0["dh"] = .string(SigningHash.decision("other").text) }
        await #expect(throws: SigningError(.serverAuthentication)) {
            try await transaction.setStatus("accept", number: "42")
        }
        let first = await scene.server.transactions[0].decision
        await #expect(throws: SigningError(.decisionPending)) { try await transaction.setStatus("deny") }
        await #expect(throws: SigningError(.decisionPending)) {
            try await transaction.setStatus("accept", number: "43")
        }
        await #expect(throws: SigningError(.serverAuthentication)) {
            try await transaction.setStatus("accept", number: "42")
        }
        #expect(await scene.server.transactions[0].decision == first)
        #expect(await scene.server.decisions.count == 1)
    }

    @Test("The same answer after the receipt gets the same receipt; another one is refused without a call")
    func afterwards() async throws {
        let transaction = try await scene.fetched(container, on: device)
        let receipt = try await transaction.setStatus("accept", number: "42")
        let calls = await scene.server.asked.count
        #expect(try await transaction.setStatus("accept", number: "42") == receipt)
        await #expect(throws: SigningError(.alreadyDecided)) { try await transaction.setStatus("deny") }
        await #expect(throws: SigningError(.alreadyDecided)) { try await transaction.setStatus("accept", number: "43") }
        #expect(await scene.server.asked.count == calls)
    }

    @Test("Many tasks that decide at once sign one decision")
    func race() async throws {
        let transaction = try await scene.fetched(container, on: device)
        let results = await withTaskGroup(of: String?.self) { group in
            for index in 0..<20 {
                group.addTask {
                    let isApproval = index.isMultiple(of: 2)
                    return try? await isApproval
                        ? transaction.setStatus("accept", number: "42").effect.rawValue
                        : transaction.setStatus("deny").effect.rawValue
                }
            }
            return await group.reduce(into: Set<String>()) { if let effect = $1 { $0.insert(effect) } }
        }
        #expect(results.count == 1)
        #expect(await scene.server.decisions.count == 1)
        #expect(await scene.server.transactions[0].effect == results.first)
    }

    @Test("An id that is forged, of another issuer, for another container, or for several")
    func ids() async throws {
        let txn = await scene.server.ask()
        let good = try await scene.server.ticket(txn)
        await #expect(throws: SigningError(.invalidArgument)) { try await device.retrieveTransactionInfo("nonsense") }
        await scene.server.sign("ticket", with: try .generate(.es256))
        let forged = try await scene.server.ticket(txn)
        await #expect(throws: SigningError(.serverAuthentication)) { try await device.retrieveTransactionInfo(forged) }
        await scene.server.sign("ticket", with: nil)
        await scene.server.edit("ticket") { $0["h"] = .string(SigningID(random: SystemRandom()).text) }
        let others = try await scene.server.ticket(txn)
        await #expect(throws: SigningError(.invalidContainer)) { try await device.retrieveTransactionInfo(others) }
        await scene.server.edit("ticket") { $0["iss"] = "https://other.example" }
        let foreign = try await scene.server.ticket(txn)
        await #expect(throws: SigningError(.invalidContainer)) { try await device.retrieveTransactionInfo(foreign) }
        await #expect(throws: SigningError(.invalidContainer)) {
            try await device.retrieveTransactionInfo(good, user: "bob")
        }
        #expect(try await device.retrieveTransactionInfo(good, user: "ana").container.id == container.id)
        await scene.server.edit("ticket") {
            $0["h"] = nil
            $0["claim"] = true
        }
        let claim = try await device.retrieveTransactionInfo(scene.server.ticket(txn))
        #expect(claim.isClaim)
        // This server lets nobody claim.
        await #expect(throws: SigningError(.invalidRequest)) { try await claim.transaction() }
        #expect(await scene.server.asked.last == "/device/transactions/claim")
    }

    @Test(
        "An id by a key that the issuer does not have, also after its keys were read again, fetches and claims nothing")
    func unknownSigner() async throws {
        let thief = try SoftwareSigningKey.generate(.es256)
        let txn = await scene.server.ask()
        for isClaim in [false, true] {
            var content = try await UnverifiedMessage<Ticket>(scene.server.ticket(txn)).content.members
            if isClaim {
                content["h"] = nil
                content["claim"] = true
            }
            let forged = try await signed(.ticket, content, kid: ProtocolKey(thief).thumbprint.text, with: thief)
            let info = try await device.retrieveTransactionInfo(forged)
            #expect(!info.isVerified)
            let calls = await scene.server.asked.count
            await #expect(throws: SigningError(.serverAuthentication)) { try await info.transaction() }
            #expect(await Array(scene.server.asked.dropFirst(calls)) == ["/configuration"])
        }
    }

    @Test("An id that fits the containers of two users of one issuer names them, and the app says which")
    func inexplicit() async throws {
        let other = try ScriptedServer(sub: "user-2")
        await other.share(keysOf: scene.server)
        let second = SigningDevice(
            store: scene.store, keys: scene.keys, transport: other.transport, clock: scene.clock)
        let enrolment = try await second.enrol(SigningInvite(scanned: other.invite()))
        let txn = await scene.server.ask()
        let own = try await scene.server.ticket(txn)
        await scene.server.edit("ticket") {
            $0["h"] = nil
            $0["claim"] = true
        }
        let claim = try await scene.server.ticket(txn)
        let calls = await scene.server.asked.count
        for user in [nil, "ana"] {
            let error = await #expect(throws: SigningError.self) {
                try await device.retrieveTransactionInfo(claim, user: user)
            }
            #expect(error?.code == .inexplicitContainer && error?.code.hid == 9)
            #expect(error?.users.sorted() == ["user-1", "user-2"])
        }
        #expect(try await device.retrieveTransactionInfo(claim, user: "user-1").container.id == container.id)
        let info = try await device.retrieveTransactionInfo(claim, user: "user-2")
        #expect(info.container.id == enrolment.containerID)
        // What the server made for one of them needs no choice.
        #expect(try await device.retrieveTransactionInfo(own).container.id == container.id)
        #expect(await scene.server.asked.count == calls)
    }

    @Test("How long it is open is measured by the monotonic clock, from the server's time")
    func remaining() async throws {
        await scene.server.set(time: 1100)
        let transaction = try await scene.fetched(container, on: device)
        #expect(transaction.remaining() == .seconds(300))
        scene.uptime.withLock { $0 += .seconds(120) }
        scene.clock.advance(by: 10 * 365 * 86400)
        #expect(transaction.remaining() == .seconds(180))
        scene.uptime.withLock { $0 += .seconds(1000) }
        #expect(transaction.remaining() == .zero)
        // The server decides, not this clock.
        #expect(try await transaction.setStatus("accept", number: "42").effect == .approve)
    }

    @Test("Transactions come one after the other, each once, and those that are over are left out")
    func sequence() async throws {
        var iterator = container.transactions().makeAsyncIterator()
        let first = await scene.server.ask()
        let gone = await scene.server.ask()
        let one = try #require(try await iterator.next())
        #expect(one.id == first.text)
        await scene.server.refuse("/device/transactions/fetch", .init(status: 410, code: "tx_expired"))
        _ = gone
        // The second has expired meanwhile; nothing is new at the next list, so it waits before it asks again.
        let next = Task { [iterator] in
            var iterator = iterator
            return try await iterator.next()?.id
        }
        while scene.clock.sleeperCount == 0 { await Task.yield() }
        let calls = await scene.server.asked.count
        let third = await scene.server.ask()
        scene.clock.advance(by: 2)
        #expect(try await next.value == third.text)
        #expect(await scene.server.asked.count == calls + 2)
        next.cancel()
    }

    @Test("A server that answers at once although nothing is open is not asked again without a pause")
    func emptyAnswers() async throws {
        let calls = await scene.server.asked.count
        let next = Task { [container] in
            var iterator = container.transactions().makeAsyncIterator()
            return try await iterator.next()?.id
        }
        while scene.clock.sleeperCount == 0, await scene.server.asked.count < calls + 20 { await Task.yield() }
        let asked = await scene.server.asked.count
        #expect(asked <= calls + 2 && scene.clock.sleeperCount == 1)
        let first = await scene.server.ask()
        scene.clock.advance(by: 2)
        #expect(try await next.value == first.text)
    }

    private func failure(of iterator: inout SigningTransactions.AsyncIterator) async -> SigningError? {
        do {
            _ = try await iterator.next()
            return nil
        } catch {
            return error as? SigningError
        }
    }

    @Test("What could not be fetched comes again when the error passes, behind what could; other errors are said once")
    func transientFetch() async throws {
        var iterator = container.transactions().makeAsyncIterator()
        let first = await scene.server.ask()
        let second = await scene.server.ask()
        await scene.server.refuse("/device/transactions/fetch", .init(status: 503, code: "busy"))
        #expect(await failure(of: &iterator) == SigningError(.busy))
        #expect(try await iterator.next()?.id == second.text)
        #expect(try await iterator.next()?.id == first.text)

        let refused = await scene.server.ask()
        let last = await scene.server.ask()
        await scene.server.refuse("/device/transactions/fetch", .init(status: 403, code: "container_blocked"))
        #expect(await failure(of: &iterator) == SigningError(.containerBlocked))
        #expect(try await iterator.next()?.id == last.text)
        let rest = iterator
        let more = Task {
            var iterator = rest
            return try await iterator.next()?.id
        }
        while scene.clock.sleeperCount == 0 { await Task.yield() }
        let newest = await scene.server.ask()
        scene.clock.advance(by: 2)
        #expect(try await more.value == newest.text, "\(refused.text)")
    }

    @Test("The wrong number ends the transaction with an error")
    func number() async throws {
        let transaction = try await scene.fetched(container, on: device)
        await #expect(throws: SigningError(.matchWrong)) { try await transaction.setStatus("accept", number: "43") }
    }
}
