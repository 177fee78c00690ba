import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Approving and refusing with a signature")
struct SigningDecisionTests {
    @Test("A device lists, fetches and approves; the relying party gets the receipt")
    func approve() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, number) = try await world.asked()
        #expect(number == nil)
        let tickets = try await device.list(container.did)
        #expect(tickets.map(\.txn) == [txn])
        #expect(tickets.first?.handle == .handle(key: container.handle, issuer: world.name, txn: txn))
        let document = try await device.fetch(txn, container).content
        #expect(document.body.title == "Confirm payment" && document.body.text == "Pay 200.00 EUR to Bob")
        #expect(document.body.fields.map(\.display) == ["200.00 EUR", "Bob"])
        #expect(document.request == .details(SigningWorld.details))
        let receipt = try await device.approve(txn, container)
        #expect(receipt.content.state == .approved && receipt.content.methods == [.possession])
        #expect(receipt.content.relyingParty == "shop" && !receipt.content.matched)
        let view = try await world.provider.parties.view(txn.text, client: "shop")
        #expect(view.state == .approved && view.receipt == receipt.compact && view.transaction.status == "accept")
        #expect(try await device.list(container.did).isEmpty)
        let audit = try await AuditLog(world.base.context).records(transactionID: txn.text)
        #expect(audit.map(\.event.rawValue) == ["signing.create", "signing.fetch", "signing.decide"])
    }

    @Test("The document is the same at each fetch, and its texts are in the language that was asked for")
    func document() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        var wish = world.wish()
        wish.locale = "de-CH"
        let txn = try await world.provider.parties.create(wish).txn
        let first = try await device.fetch(txn, container)
        #expect(try await device.fetch(txn, container).compact == first.compact)
        #expect(first.content.body.title == "Zahlung freigeben" && first.content.body.locale == "de-CH")
    }

    @Test("The same decision gets the same receipt, also after the end; another one is told so")
    func repetition() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked()
        let document = try await device.fetch(txn, container)
        let body = try await device.signed(try device.decision(document, status: "accept"), label: "payments")
        let receipt = try await device.decide(body, container)
        world.base.clock.advance(by: 1000)
        #expect(try await device.decide(body, container).compact == receipt.compact)
        let other = try await device.signed(try device.decision(document, status: "deny"), label: nil)
        #expect(try await refusal { _ = try await device.decide(other, container) } == "already_decided")
    }

    @Test("A user says no with the device key alone, also to what was not opened")
    func refuse() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (denied, _) = try await world.asked()
        let document = try await device.fetch(denied, container)
        let deny = try await device.signed(try device.decision(document, status: "deny"), label: nil)
        #expect(try await device.decide(deny, container).content.state == .denied)
        let (reported, _) = try await world.asked()
        let blind = try await device.signed(device.blind(reported, container, .report), label: nil)
        let receipt = try await device.decide(blind, container).content
        #expect(receipt.state == .reported && receipt.document == nil)
        let evidence = try EvidenceBundle(
            reading: try await world.provider.evidence.bundle(reported.text, for: .client("shop")))
        let identity = try await device.trust().identity.thumbprint
        let report = EvidenceVerification.report(on: evidence, trust: identity)
        #expect(report.exitStatus == 0, "\(report.contradicted)")
        let (other, _) = try await world.asked()
        let approving = try await device.signed(device.blind(other, container), label: "payments")
        #expect(try await refusal { _ = try await device.decide(approving, container) } == "status_not_allowed")
        #expect(try await world.state(other) == "PENDING")
    }

    @Test("A decision about something else than the document is refused and changes nothing", arguments: 0..<9)
    func mismatch(what: Int) async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked()
        let document = try await device.fetch(txn, container)
        let right = try device.decision(document, status: "accept")
        let random = SystemRandom()
        let wrong = Decision(
            issuer: right.issuer, did: what == 0 ? SigningID(random: random) : right.did,
            sub: what == 1 ? "somebody" : right.sub, txn: right.txn,
            nonce: what == 2 ? SigningID(random: random) : right.nonce,
            document: what == 3 ? .document("other") : right.document,
            displayed: what == 4 ? .displayed(["other"]) : right.displayed,
            status: what == 5 ? "deny" : what == 6 ? "other" : right.status, effect: right.effect,
            reason: what == 7 ? "because" : nil, match: nil, jti: right.jti)
        let body = try await device.signed(wrong, label: what == 8 ? "sign-in" : "payments")
        let code = try await refusal { _ = try await device.decide(body, container) }
        #expect(code == (what < 5 || what == 5 ? "hash_mismatch" : "status_not_allowed"))
        #expect(try await world.state(txn) == "PENDING")
        #expect(try await device.approve(txn, container).content.state == .approved)
    }

    @Test("The device key's signature is for this decision, transaction, container and issuer", arguments: 0..<4)
    func possession(what: Int) async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked()
        let document = try await device.fetch(txn, container)
        let right = try await device.signed(try device.decision(document, status: "accept"), label: "payments")
        let other = try await device.signed(try device.decision(document, status: "accept"), label: "payments")
        let random = SystemRandom()
        let content = Possession(
            issuer: what == 0 ? "https://other.example" : world.name,
            did: what == 1 ? SigningID(random: random) : container.did,
            txn: what == 2 ? SigningID(random: random) : txn,
            decision: .decision(what == 3 ? other.decision : right.decision))
        let moved = DecideBody(
            decision: right.decision,
            possession: try await SignedMessage.sign(content, with: device.deviceKey).compact)
        #expect(try await refusal { _ = try await device.decide(moved, container) } == "hash_mismatch")
        #expect(try await world.state(txn) == "PENDING")
        #expect(try await device.decide(right, container).content.state == .approved)
    }

    @Test("A signature that is not good ends the transaction")
    func badSignature() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        for part in 0..<2 {
            let (txn, _) = try await world.asked()
            let document = try await device.fetch(txn, container)
            let body = try await device.signed(try device.decision(document, status: "accept"), label: "payments")
            let broken = DecideBody(
                decision: part == 0 ? Self.flipped(body.decision) : body.decision,
                possession: part == 1 ? Self.flipped(body.possession ?? "") : body.possession)
            #expect(try await refusal { _ = try await device.decide(broken, container) } == "bad_signature")
            #expect(try await world.state(txn) == "FAILED")
            #expect(try await refusal { _ = try await device.decide(body, container) } == "tx_failed")
        }
    }

    private static func flipped(_ compact: String) -> String {
        var parts = compact.split(separator: ".").map(String.init)
        parts[2] = (parts[2].first == "A" ? "B" : "A") + parts[2].dropFirst()
        return parts.joined(separator: ".")
    }

    @Test("A number is tried once: a right one approves, a wrong one ends the transaction")
    func number() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (right, number) = try await world.asked("numbered")
        let receipt = try await device.approve(right, container, number: number).content
        #expect(receipt.matched)
        let (wrong, other) = try await world.asked("numbered")
        let guess = other == "00" ? "01" : "00"
        #expect(try await refusal { _ = try await device.approve(wrong, container, number: guess) } == "match_wrong")
        #expect(try await world.state(wrong) == "FAILED")
        let (without, _) = try await world.asked("numbered")
        #expect(try await refusal { _ = try await device.approve(without, container) } == "hash_mismatch")
        let document = try await device.fetch(without, container)
        let deny = try await device.signed(try device.decision(document, status: "deny"), label: nil)
        #expect(try await device.decide(deny, container).content.state == .denied)
    }

    @Test("Of a hundred decisions with all numbers at once one is compared, and at most one approves")
    func numberRace() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked("numbered")
        let document = try await device.fetch(txn, container)
        let codes = try await withThrowingTaskGroup(of: String?.self) { group in
            for guess in 0..<100 {
                group.addTask {
                    let number = guess < 10 ? "0\(guess)" : "\(guess)"
                    let body = try await device.signed(
                        try device.decision(document, status: "accept", number: number), label: "payments")
                    return try await refusal { _ = try await device.decide(body, container) }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count { $0 == nil || $0 == "match_wrong" } == 1)
        #expect(codes.allSatisfy { [nil, "match_wrong", "match_used", "tx_failed", "already_decided"].contains($0) })
    }

    @Test("Nobody sees or answers another user's transaction, or decides without having fetched")
    func foreign() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked()
        let ben = SigningCaller(world.base.ben)
        let invite = try await world.invite(ben)
        let other = try TestDevice(world)
        let foreign = try await other.enrol(invite.code)
        _ = try await world.provider.invites.enter(digits: foreign.digits, ben, pid: invite.pid)
        #expect(try await other.list(foreign.did).isEmpty)
        #expect(try await refusal { _ = try await other.fetch(txn, foreign) } == "tx_unknown")
        let blind = try await other.signed(other.blind(txn, foreign), label: nil)
        #expect(try await refusal { _ = try await other.decide(blind, foreign) } == "tx_unknown")
        let document = try await device.fetch(txn, container)
        let (second, secondContainer) = try await world.enrolled()
        let decision = try device.decision(document, status: "deny")
        let moved = Decision(
            issuer: decision.issuer, did: secondContainer.did, sub: decision.sub, txn: txn, nonce: decision.nonce,
            document: decision.document, displayed: decision.displayed, status: "deny", effect: .deny,
            jti: decision.jti)
        let body = try await second.signed(moved, label: nil)
        #expect(try await refusal { _ = try await second.decide(body, secondContainer) } == "tx_not_fetched")
        #expect(
            try await refusal { _ = try await world.provider.parties.view(txn.text, client: "other") } == "tx_unknown")
    }

    @Test("A blocked, new or expired container does not approve")
    func containers() async throws {
        let world = try await SigningWorld { $0.approvalDelay = 60 }
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked()
        #expect(try await refusal { _ = try await device.approve(txn, container) } == "approvals_not_yet")
        world.base.clock.advance(by: 60)
        let admin = SigningCaller(
            try await TransactionFixture.signIn("admin", roles: [.admin], world.base.context))
        let did = container.did.text
        #expect(
            try await refusal { _ = try await world.provider.devices.change(world.ana, did: did, .block) }
                == "forbidden")
        #expect(try await world.provider.devices.change(admin, did: did, .block) == .blocked)
        #expect(try await refusal { _ = try await device.approve(txn, container) } == "container_blocked")
        #expect(try await world.provider.devices.change(admin, did: did, .unblock) == .active)
        #expect(try await device.approve(txn, container).content.state == .approved)
        #expect(try await world.provider.devices.change(world.ana, did: did, .revoke) == .revoked)
        #expect(try await device.status(container.did).state == .revoked)
        let audit = try await world.audited(.signingContainer)
        #expect(audit == ["success blocked", "success unblocked", "success revoked"])
        let actors = [admin, admin, world.ana].map { "success \($0.session.user.id)" }
        #expect(try await world.audited(.signingContainer, "by") == actors)
    }

    @Test("A container without a key for an approval is not asked, and may refuse blindly")
    func withoutKey() async throws {
        let world = try await SigningWorld { $0.keys = [SigningSettings.standardKeys[0]] }
        let (device, container) = try await world.enrolled()
        var settings = world.provider.settings
        settings.keys = SigningSettings.standardKeys
        settings.templates["login"] = SigningTemplate(
            kind: .authentication, title: LocalizedText("Sign in"), notShown: ["/"])
        let later = SigningProvider(world.base.context, settings: settings)
        let txn = try await later.parties.create(world.wish("login")).txn
        #expect(try await device.list(container.did).isEmpty)
        #expect(try await device.status(container.did).pending == 0)
        #expect(try await refusal { _ = try await device.fetch(txn, container) } == "tx_unknown")
        let blind = try await device.signed(device.blind(txn, container), label: nil)
        #expect(try await device.decide(blind, container).content.state == .denied)
    }

    @Test("A record that a device begins is signed by the key that it names, and is no client's")
    func record() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let body = CreateBody(message: "Read on 1 May", label: "payments", rid: SigningID(random: SystemRandom()))
        let one: Fetched = try await device.askSealed("transactions/create", container.did, body)
        let two: Fetched = try await device.askSealed("transactions/create", container.did, body)
        #expect(one.document == two.document)
        let document = try await device.trust().verified(one.document, as: TransactionDocument.self)
        let content = document.content
        #expect(content.kind == .record && content.body.text == "Read on 1 May")
        #expect(content.body.relyingParty.id == "device")
        #expect(content.request == .details("Read on 1 May"))
        let decision = try await device.signed(try device.decision(document, status: "accept"), label: "payments")
        #expect(try await device.decide(decision, container).content.state == .approved)
        let txn = content.txn.text
        #expect(try await refusal { _ = try await world.provider.parties.view(txn, client: "device") } == "tx_unknown")
        _ = try await world.provider.evidence.bundle(txn, for: .caller(world.ana))
        let wrong = CreateBody(message: "x", label: "sign-in", rid: SigningID(random: SystemRandom()))
        #expect(
            try await refusal {
                _ = try await device.call("transactions/create", container.did, wrong)
            } == "status_not_allowed")
    }

    @Test("A proof that was used before does not spend the number")
    func spentProof() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let jti = SigningID(random: SystemRandom())
        func send(_ path: String, _ body: some MessagePart) async throws {
            let sealed = try await device.sealed(body.encoded(), sender: container.did.text)
            let proof = try await device.proof(container.did, path: path, body: sealed, jti: jti)
            _ = try await world.send(path, proof: proof, body: sealed)
        }
        try await send("update", UpdateBody(name: "phone"))
        let (txn, number) = try await world.asked("numbered")
        let document = try await device.fetch(txn, container)
        let body = try await device.signed(
            try device.decision(document, status: "accept", number: number), label: "payments")
        #expect(try await refusal { try await send("transactions/decide", body) } == "replay")
        #expect(try await device.decide(body, container).content.matched)
    }

    @Test("A template takes typed values only, and what a relying party sends cannot change its texts")
    func templates() async throws {
        var transfer = SigningWorld.payment
        transfer.text = nil
        transfer.fields += [
            SigningTemplate.Field(
                id: "account", label: LocalizedText("Account"), type: .account, pointer: "/0/account"),
            SigningTemplate.Field(id: "day", label: LocalizedText("Day"), type: .date, pointer: "/0/day"),
        ]
        let world = try await SigningWorld { [transfer] in $0.templates["transfer"] = transfer }
        func code(_ details: String, template: String = "payment") async throws -> String? {
            try await refusal { _ = try await world.provider.parties.create(world.wish(template, details: details)) }
        }
        let good = SigningWorld.details
        #expect(try await code(good) == nil)
        #expect(try await code(good, template: "other") == "invalid_request")
        #expect(try await code("[]") == "invalid_request")
        #expect(try await code("no JSON") == "invalid_request")
        for (part, other) in [
            ("\"200.00\"", "200.00"), ("\"200.00\"", "\"0200\""), ("\"EUR\"", "\"eur\""), ("\"Bob\"", "7"),
            ("\"Bob\"", "\"B\\u202Eob\""), ("\"Bob\"", "\"\""), ("\"creditorName\":\"Bob\"", "\"x\":1"),
            ("\"Bob\"", "\"Bob\",\"iban\":\"DE1\""), ("}]", "},{\"type\":\"payment\"}]"), ("}]", "},null]"),
            ("\"EUR\"", "\"EUR\",\"more\":1"),
            ("\"Bob\"", "\"   \""), ("\"Bob\"", "\"Bob     Eve\""),
        ] {
            #expect(try await code(good.replacing(part, with: other)) == "invalid_request", "\(other)")
        }
        let dated = good.replacing(
            "}]", with: #","account":{"iban":"DE89370400440532013000"},"day":"2026-02-28"}]"#)
        #expect(try await code(dated, template: "transfer") == nil)
        for (part, other) in [
            ("DE89", "DE88"), ("2013000", "2031000"), ("02-28", "02-30"), ("2026-02-28", "2026-02-29"),
            ("02-28", "04-31"),
        ] {
            let changed = dated.replacing(part, with: other)
            #expect(try await code(changed, template: "transfer") == "invalid_request", "\(other)")
        }
        let braces = world.wish(details: good.replacing("Bob", with: "{amount} {to}"))
        let made = try await world.provider.parties.create(braces)
        let draft = try DocumentDraft(plaintext: Array(made.content.utf8))
        #expect(draft.body.text == "Pay 200.00 EUR to {amount} {to}")
    }

    @Test("The evidence of a decision holds all that signs it, for the relying party and the user")
    func evidence() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked()
        let provider = world.provider
        #expect(
            try await refusal { _ = try await provider.evidence.bundle(txn.text, for: .client("shop")) } == "tx_unknown"
        )
        let receipt = try await device.approve(txn, container)
        let bytes = try await provider.evidence.bundle(txn.text, for: .client("shop"))
        let identity = try await device.trust().identity.thumbprint
        let report = EvidenceVerification.report(on: try EvidenceBundle(reading: bytes), trust: identity)
        #expect(report.exitStatus == 0, "\(report.contradicted)")
        let bundle = try JSONValue.parse(bytes)
        let entry = try #require(bundle["transactions"]?.array?.first)
        #expect(entry["receipt"]?.string == receipt.compact && entry["possession"] != nil && entry["txd"] != nil)
        let request = try #require(entry["request"]?.string.flatMap { Base64URL.decode($0) })
        #expect(SigningHash(sha256: request) == .details(SigningWorld.details))
        let record = try #require(bundle["enrolments"]?.array?.first?["record"]?.string)
        #expect(receipt.content.record == .record(record))
        #expect(bundle["enrolments"]?.array?.first?["enrol"]?.string == container.enrol)
        _ = try await device.trust().verified(record, as: EnrolmentRecord.self)
        _ = try await provider.evidence.bundle(txn.text, for: .caller(world.ana))
        for reader in [
            SigningEvidence.Reader.client("other"), .caller(SigningCaller(world.base.ben)),
        ] {
            #expect(try await refusal { _ = try await provider.evidence.bundle(txn.text, for: reader) } == "tx_unknown")
        }
        let readers = ["success shop", "success \(world.ana.session.user.id)"]
        #expect(try await world.audited(.signingEvidence, "by") == readers)
    }
}
