import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Testing

@Suite("Transaction signing: the published vectors")
struct VectorTests {
    let vectors: Vectors

    init() throws { vectors = try Vectors.load() }

    @Test("Every message of the page is known to these tests, and every type of the registry has a message")
    func complete() throws {
        #expect(Set(vectors.messages.map(\.name)) == Set(MessageReading.all.map(\.name)))
        #expect(Set(MessageReading.all.map(\.type)) == Set(MessageType.allCases))
        #expect(vectors.negatives.count == 18)
    }

    @Test("Thumbprints of the keys")
    func thumbprints() throws {
        for name in vectors.scalars.keys {
            #expect(try vectors.publicKey(name).thumbprint.text == vectors.thumbprints[name])
        }
        #expect(vectors.scalars.count == 8)
    }

    @Test("A message is verified, read, and written with the same bytes", arguments: MessageReading.all)
    func messages(reading: MessageReading) throws {
        let message = try #require(vectors.messages.first { $0.name == reading.name })
        let payload = try CompactParts(message.compact).parts[1]
        let written = try reading.read(message.compact, vectors.publicKey(message.signer))
        #expect(String(decoding: written, as: UTF8.self) == String(decoding: payload, as: UTF8.self))
    }

    @Test("The hashes of requests, offers, key lists, records, documents, decisions and evaluations")
    func hashes() throws {
        let offer = try vectors.message("offer", as: Offer.self)
        let enrol = try vectors.message("enrol", as: Enrolment.self)
        let record = try vectors.message("record", as: EnrolmentRecord.self)
        let receipt = try vectors.message("receipt", as: Receipt.self).content
        let decision = try vectors.message("decision", as: Decision.self)
        #expect(try SigningHash.request(vectors.compact("start")) == offer.content.head.request)
        #expect(
            try SigningHash.request(vectors.compact("proof.fetch"))
                == vectors.message("fetched", as: Fetched.self).content.head.request)
        #expect(SigningHash.offer(offer.compact) == enrol.content.offer)
        #expect(SigningHash.enrolment(enrol.compact) == record.content.enrol)
        #expect(SigningHash.record(record.compact) == receipt.record)
        #expect(try SigningHash.document(vectors.compact("txd")) == receipt.document)
        #expect(SigningHash.decision(decision.compact) == receipt.decision)
        #expect(try SigningHash.decision(decision.compact).text == vectors.text("decision hash dh"))
        #expect(
            try SigningHash.evaluation(vectors.compact("eval.unlock"))
                == vectors.message("confirm", as: EvaluationConfirmation.self).content.evaluation)
        #expect(try SigningHash.details(vectors.text("authorization_details")) == receipt.request)
        #expect(
            try SigningHash.detailsFrame(vectors.text("authorization_details")).bytes
                == vectors.bytes("frame of the details"))
    }

    @Test("Key list, commitment, transcript and digits")
    func enrolment() throws {
        let enrol = try vectors.message("enrol", as: Enrolment.self).content
        #expect(try enrol.keyList.frame.bytes == vectors.bytes("key list K"))
        #expect(enrol.nonceD.bytes == (try vectors.bytes("nonceD")))
        #expect(enrol.nonceS.bytes == (try vectors.bytes("nonceS")))
        #expect(
            try SigningHash.commitment(nonceD: enrol.nonceD, keys: enrol.keyList).bytes == vectors.bytes("commitment"))
        let transcript = try enrol.transcript(identity: vectors.publicKey("identity").thumbprint)
        #expect(try transcript.frame.bytes == vectors.bytes("transcript"))
        #expect(try transcript.hash.bytes == vectors.bytes("transcript's SHA-256"))
        #expect(try transcript.digits == vectors.text("digits"))
        #expect(try vectors.message("record", as: EnrolmentRecord.self).content.transcript == transcript.hash)
    }

    @Test("What a transaction of the gateway binds")
    func gateway() throws {
        let binding = PolicyTransactionBinding(
            id: "3b8c1b2b-0f6e-4d0c-9b1f-2f6a5d1f7e10", realm: "/alpha", policySet: "bank", policy: "pay",
            revision: "r1", strategy: "journey", specifier: "ConfirmTransfer",
            resource: "https://api.bank.example:443/transfers", query: nil, method: "POST",
            mediaType: "application/json",
            bodyHash: Base64URL.encode(SHA2.sha256(Array(#"{"to":"Bob","amount":"200.00","currency":"EUR"}"#.utf8))),
            user: vectors.sub, session: "a2d7c9b0-7c7e-4d1a-8f43-5f0d9a6f0c11", grant: nil, keyThumbprint: nil)
        #expect(try binding.frame.bytes == vectors.bytes("frame of a gateway's transaction"))
        #expect(try binding.hash.text == vectors.text("req of a gateway's transaction"))
    }

    @Test("The handle by which a container recognises a transaction")
    func handle() throws {
        let ticket = try vectors.message("tds", as: Ticket.self).content
        let key = try Secret(bytes: vectors.bytes("handle key"))
        #expect(SigningID.handle(key: key, issuer: ticket.issuer, txn: ticket.txn) == ticket.handle)
        #expect(try vectors.message("enrolled", as: Enrolled.self).content.handle == key)
    }

    @Test("The texts that were shown, and their hash")
    func displayed() throws {
        let document = try vectors.message("txd", as: TransactionDocument.self)
        let decision = try vectors.message("decision", as: Decision.self)
        let status = try #require(document.content.status(named: "accept"))
        let texts = document.content.displayed(status: status, match: "42")
        #expect(try SigningHash.displayedFrame(texts).bytes == vectors.bytes("frame of dsp"))
        #expect(SigningHash.displayed(texts) == decision.content.displayed)
        #expect(
            document.content.mismatch(with: decision.content, compact: document.compact, signer: decision.kid) == nil)
    }

    @Test("VOPRF input, sealing key and ratchet")
    func passwords() throws {
        let did = try vectors.message("offer", as: Offer.self).content.did
        let s = try Secret(bytes: vectors.bytes("s = scrypt(PIN)"))
        let input = PasswordKeys.oprfInput(issuer: vectors.issuer, did: did, slot: .signing, generation: 0, s: s)
        #expect(try input.revealBytes() == vectors.bytes("OPRF input"))
        let context = try SealedKeyContext(
            mode: .assisted, issuer: vectors.issuer, did: did, slot: .signing,
            kid: vectors.publicKey("sign").thumbprint, generation: 0,
            cost: #require(PasswordCost(logN: 15, r: 8, p: 1)), salt: vectors.bytes("salt"))
        let kek = try context.key(s: s, output: Secret(bytes: vectors.bytes("o = OPRF output")))
        #expect(try kek.revealBytes() == vectors.bytes("KEK"))
        #expect(try SigningHash.ratchet(Secret(bytes: vectors.bytes("ratchet r"))).bytes == vectors.bytes("H(r)"))
    }

    @Test("The invite's code")
    func code() throws {
        let code = try #require(InviteCode(bytes: vectors.bytes("code's bytes")))
        #expect(try code.canonical.reveal() == vectors.text("code"))
        #expect(try code.shown.reveal() == vectors.text("code as it is shown"))
        #expect(try vectors.message("invite", as: Invite.self).content.code == code)
    }

    @Test("Requests and replies are opened, and hold what the page says")
    func envelopes() async throws {
        let did = try vectors.message("offer", as: Offer.self).content.did.text
        let requests = [
            "start body", "evaluate body", "commit body", "complete body", "confirm body", "list body", "fetch body",
            "unlock body", "confirm slot body", "decide body",
        ]
        for name in requests {
            let sender = name == "start body" ? try vectors.publicKey("device").thumbprint.text : did
            let plaintext = try await SealedEnvelope(vectors.text(name)).opened(
                with: vectors.agreementKey("encryption"), content: .request, sender: sender, recipient: vectors.issuer)
            #expect(try JSONValue.parse(plaintext).object != nil, "\(name)")
            switch name {
            case "start body": #expect(try StartBody(plaintext: plaintext).start == vectors.compact("start"))
            case "evaluate body": #expect(try EvaluateBody(plaintext: plaintext).encoded() == plaintext)
            case "commit body":
                let body = try CommitBody(plaintext: plaintext)
                #expect(try body.commitment.bytes == vectors.bytes("commitment"))
                #expect(try body.offer == .offer(vectors.compact("offer")) && body.encoded() == plaintext)
            case "complete body":
                let body = try CompleteBody(plaintext: plaintext)
                #expect(try body.enrol == vectors.compact("enrol"))
                #expect(body.name == "Ana's laptop" && body.encoded() == plaintext)
            case "confirm body": #expect(try ConfirmBody(plaintext: plaintext).encoded() == plaintext)
            case "list body": #expect(try ListBody(plaintext: plaintext).wait == 25)
            case "fetch body": #expect(try FetchBody(plaintext: plaintext).encoded() == plaintext)
            case "decide body":
                let body = try DecideBody(plaintext: plaintext)
                #expect(try body.decision == vectors.compact("decision"))
                #expect(try body.possession == vectors.compact("possession"))
            default: break
            }
        }
        for (name, message) in [("enrolled reply", "enrolled"), ("list reply", "list"), ("fetched reply", "fetched")] {
            let plaintext = try await SealedEnvelope(vectors.text(name)).opened(
                with: vectors.agreementKey("transport"), content: .reply, sender: vectors.issuer, recipient: did)
            #expect(try String(decoding: plaintext, as: UTF8.self) == vectors.compact(message))
        }
    }

    @Test("The server's messages are verified from the pinned identity key on")
    func trust() throws {
        let configuration = try IssuerConfiguration(
            issuer: vectors.issuer, name: "Bank of Example", identity: vectors.publicKey("identity"), next: [],
            certificates: [vectors.compact("cert"), vectors.compact("cert.encryption")])
        let read = try IssuerConfiguration(reading: configuration.encoded())
        let trust = try IssuerTrust(
            read, issuer: vectors.issuer,
            anchor: .thumbprint(vectors.message("invite", as: Invite.self).content.identity))
        #expect(try trust.encryptionKey == vectors.publicKey("encryption"))
        #expect(trust.minimum == 6)
        let offer = try vectors.compact("offer")
        let request = try SigningHash.request(vectors.compact("start"))
        let device = try vectors.publicKey("device").thumbprint.text
        #expect(throws: Never.self) {
            try trust.reply(offer, as: Offer.self, audience: device, request: request)
        }
        #expect(throws: Never.self) { try trust.verified(vectors.compact("txd"), as: TransactionDocument.self) }
    }
}
