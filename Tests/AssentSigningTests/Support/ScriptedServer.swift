import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentTesting
import HTTPTypes
import Testing

/// Signs any content, also one that the real writer would not make.
func signed(_ type: MessageType, _ content: JSONObject, kid: String, with key: SoftwareSigningKey) async throws
    -> String
{
    let header: JSONObject = ["alg": "ES256", "typ": .string(type.rawValue), "kid": .string(kid)]
    let input =
        Base64URL.encode(JSONValue.object(header).serializedBytes()) + "."
        + Base64URL.encode(JSONValue.object(content).serializedBytes())
    return input + "." + Base64URL.encode(try await key.signature(for: Array(input.utf8)))
}

/// A server of the protocol with one user, who types what they see. It keeps its promises (the same for a repetition),
/// unless a test edits what it says.
actor ScriptedServer {
    typealias Edit = @Sendable (inout JSONObject) -> Void

    /// What the server refuses, as the page's error codes.
    struct Refusal: Error {
        let status: Int
        let code: String
    }

    struct Transaction {
        let txn: SigningID
        var document: String?
        var decision: String?
        var receipt: String?
        var effect: String?
        /// A wrong number has ended it.
        var hasFailed = false

        var isOpen: Bool { receipt == nil && !hasFailed }
    }

    nonisolated let issuer: String
    nonisolated let code = InviteCode(random: SystemRandom())
    let pid = SigningID(random: SystemRandom())
    let did = SigningID(random: SystemRandom())
    let sub: String
    var time = 1000
    var certified = 900...90_000

    var identity: SoftwareSigningKey
    var next: [String] = []
    var online: SoftwareSigningKey
    var encryption = SoftwareAgreementKey.generate()
    var generation = 1
    var minimum = 1

    /// What is edited before it is signed, and by whom it is signed, by the message's name.
    var edits: [String: Edit] = [:]
    var signers: [String: SoftwareSigningKey] = [:]
    /// Replies that are sent in place of the right ones, by path.
    var replays: [String: String] = [:]
    /// Refusals in place of replies, by path.
    var refusals: [String: [Refusal]] = [:]
    /// The replies that were sent, by path.
    var sent: [String: [String]] = [:]
    /// The requests' plaintexts.
    var plaintexts: [[UInt8]] = []
    /// The paths that were asked for.
    var asked: [String] = []

    var nonce = "nonce-0"
    var proofs: Set<String> = []
    var device: ProtocolKey?
    var offers: [String] = []
    /// How many commitments are refused because the offer was replaced.
    var lateStarts = 0
    var commitment: SigningHash?
    var commitments: Set<SigningHash> = []
    let nonceS = SigningNonce(random: SystemRandom())
    var enrolments: Set<String> = []
    var enrolment: Enrolment?
    let echo = SigningNonce(random: SystemRandom())
    let handle = Secret(bytes: SystemRandom().bytes(32))
    var state = ContainerState.unconfirmed
    var hasConfirmed = false
    var hasTyped = false
    var transactions: [Transaction] = []
    var updates: [UpdateBody] = []
    /// The texts of all decisions that came.
    var decisions: Set<String> = []
    var info: [String: String] = [:]
    var offerKeys: JSONValue = [
        ["usage": "device", "label": "device", "policy": "device"],
        ["usage": "transport", "label": "transport", "policy": "device"],
        ["usage": "sign", "label": "payments", "policy": "device"],
    ]

    var offerPolicies: JSONValue = [["id": "device", "type": "device"]]
    var slots: [ScriptedSlot] = []
    var expectedModes = Set(ProtectionMode.allCases)
    /// New keys that are on their way.
    var renewal: ScriptedRenewal?

    init(issuer: String = "https://am.example/signing", sub: String = "user-1") throws {
        self.issuer = issuer
        self.sub = sub
        identity = try .generate(.es256)
        online = try .generate(.es256)
    }

    // MARK: What a test does

    func edit(_ name: String, _ edit: Edit?) { edits[name] = edit }
    func sign(_ name: String, with key: SoftwareSigningKey?) { signers[name] = key }
    func refuse(_ path: String, _ refusals: Refusal...) { self.refusals[path] = refusals }
    func refuse(_ path: String, _ refusal: Refusal, times: Int) {
        refusals[path] = Array(repeating: refusal, count: times)
    }
    func replay(_ path: String, _ reply: String?) { replays[path] = reply }
    func offer(keys: JSONValue) { offerKeys = keys }
    /// A delayed request replaces the offer before each of so many commitments.
    func replaceOffers(_ count: Int) { lateStarts = count }
    func set(state: ContainerState) { self.state = state }
    func set(time: Int) { self.time = time }
    func expect(modes: Set<ProtectionMode>) { expectedModes = modes }
    func certify(_ time: ClosedRange<Int>) { certified = time }

    /// Another user's enrolment at the same issuer.
    func share(keysOf other: ScriptedServer) async {
        (identity, online, encryption) = await (other.identity, other.online, other.encryption)
    }

    /// The text of the QR code.
    func invite() async throws -> String {
        let content: JSONObject = [
            "v": 1, "iss": .string(issuer), "pid": .string(pid.text), "code": .string(code.canonical.reveal()),
            "idk": .string(try ProtocolKey(identity).thumbprint.text), "iat": 1000, "exp": 1900,
        ]
        return try await message("invite", .invite, content)
    }

    /// The user types digits.
    func type(_ digits: String?) throws -> Bool {
        let enrolment = try #require(enrolment)
        let expected = try enrolment.transcript(identity: ProtocolKey(identity).thumbprint).digits
        guard let digits, digits.filter({ $0 != " " }) == expected else { return false }
        hasTyped = true
        activate()
        return true
    }

    /// A relying party asks for something.
    func ask() -> SigningID {
        let transaction = Transaction(txn: SigningID(random: SystemRandom()))
        transactions.append(transaction)
        return transaction.txn
    }

    /// The transaction's id, as a push message carries it.
    func ticket(_ txn: SigningID) async throws -> String {
        try await message(
            "ticket", .ticket,
            [
                "v": 1, "iss": .string(issuer), "txn": .string(txn.text), "exp": 1400,
                "h": .string(SigningID.handle(key: handle, issuer: issuer, txn: txn).text),
            ])
    }

    /// A new online key; those before it count no more if `withdrawing`.
    func rotateOnlineKey(withdrawing: Bool) throws {
        online = try .generate(.es256)
        encryption = .generate()
        generation += 2
        if withdrawing { minimum = generation }
    }

    /// A new identity key, vouched for by the old one.
    func rotateIdentity(forged: Bool = false) async throws {
        let successor = try SoftwareSigningKey.generate(.es256)
        let content = try NextIdentity(
            issuer: issuer, issuedAt: time, sequence: next.count + 1, jwk: ProtocolKey(successor))
        next.append(
            try await forged
                ? signed(
                    .next, content.members, kid: ProtocolKey(identity).thumbprint.text, with: successor)
                : SignedMessage.sign(content, with: identity).compact)
        identity = successor
    }

    private func activate() {
        if hasConfirmed, hasTyped, state == .unconfirmed { state = .active }
    }

    // MARK: Answering

    nonisolated var transport: InMemoryTransport {
        InMemoryTransport { exchange in try await self.answer(exchange) }
    }

    private func answer(_ exchange: InMemoryTransport.Exchange) async throws -> HTTPReply {
        let prefix = String(issuer.dropFirst("https://am.example".count))
        let path = String((exchange.request.path ?? "").dropFirst(prefix.count))
        asked.append(path)
        // A nonce is good for the next call only.
        let expected = nonce
        nonce = "nonce-\(asked.count)"
        var fields: HTTPFields = [:]
        fields[try field("TSP-Nonce")] = nonce
        do {
            if var list = refusals[path], !list.isEmpty {
                let refusal = list.removeFirst()
                refusals[path] = list
                throw refusal
            }
            let body = try await reply(path, exchange, nonce: expected)
            let text = replays[path] ?? body
            sent[path, default: []].append(text)
            return HTTPReply(HTTPResponse(status: .ok, headerFields: fields), body: HTTPBody(text))
        } catch let refusal as Refusal {
            fields[.contentType] = "application/problem+json"
            let problem: JSONValue = ["code": .string(refusal.code), "title": "No", "remaining": 2]
            return HTTPReply(
                HTTPResponse(status: .init(code: refusal.status), headerFields: fields),
                body: HTTPBody(problem.serializedBytes()))
        }
    }

    private func reply(
        _ path: String, _ exchange: InMemoryTransport.Exchange, nonce expected: String
    ) async throws -> String {
        if path == "/configuration" { return try await configuration() }
        let envelope = try SealedEnvelope(exchange.text)
        guard try envelope.kid == ProtocolKey(encryption).thumbprint else {
            throw Refusal(status: 400, code: "unknown_key")
        }
        if path == "/device/provision/start" { return try await start(envelope, expected) }
        let name = try field("TSP-Proof")
        let proof = try #require(exchange.request.headerFields[name])
        let unverified = try UnverifiedMessage<CallProof>(proof)
        let proven = try unverified.verified(with: prover(unverified.kid)).content
        guard proven.nonce == expected else { throw Refusal(status: 401, code: "use_nonce") }
        #expect(proven.url == issuer + path && proven.method == "POST" && proven.issuer == issuer && proven.did == did)
        #expect(proven.bodyHash == SigningHash(sha256: exchange.body))
        #expect(proofs.insert(proven.jti.text).inserted, "a proof was sent twice")
        let plaintext = try await envelope.opened(
            with: encryption, content: .request, sender: did.text, recipient: issuer)
        plaintexts.append(plaintext)
        return try await act(path, plaintext, request: .request(proof))
    }

    private func configuration() async throws -> String {
        var certificates: [String] = []
        for (use, key, generation) in [
            (OnlineKeyUse.sig, try ProtocolKey(online), generation),
            (.enc, try ProtocolKey(encryption), generation + 1),
        ] {
            certificates.append(
                try await SignedMessage.sign(
                    KeyCertificate(
                        issuer: issuer, issuedAt: certified.lowerBound, expiresAt: certified.upperBound, use: use,
                        generation: generation,
                        minimum: minimum, jwk: key), with: identity
                ).compact)
        }
        let configuration = IssuerConfiguration(
            issuer: issuer, name: "Bank", identity: try ProtocolKey(identity), next: next, certificates: certificates)
        var object = try #require(JSONValue.parse(configuration.encoded()).object)
        edits["configuration"]?(&object)
        return JSONValue.object(object).serialized()
    }

    private func start(_ envelope: SealedEnvelope, _ expected: String) async throws -> String {
        // The sender's name is in the header, which opening compares; the device key inside must have that name.
        let key = try #require(envelope.claimedSender)
        let plaintext = try await envelope.opened(
            with: encryption, content: .request, sender: key, recipient: issuer)
        let body = try StartBody(plaintext: plaintext)
        let start = try UnverifiedMessage<Start>(body.start).verifiedByItself().content
        #expect(start.jwk.thumbprint.text == key && start.issuer == issuer && Set(start.modes) == expectedModes)
        guard start.nonce == expected else { throw Refusal(status: 401, code: "use_nonce") }
        guard start.code == code else { throw Refusal(status: 404, code: "invalid_code") }
        device = start.jwk
        info = start.info
        let offer = try await self.offer(.request(body.start), to: key, commit: "digits", slots: offeredSlots)
        offers.append(offer)
        return offer
    }

    /// What is edited in each offer, is edited in that of a renewal first.
    func offer(
        _ request: SigningHash, to device: String, commit: String, slots: JSONValue, isRenewal: Bool = false
    ) async throws -> String {
        var content = reply(
            request, audience: device,
            [
                "pid": .string(pid.text), "did": .string(did.text),
                "identity": .string(try ProtocolKey(identity).thumbprint.text), "name": "Bank of Tests",
                "commit": .string(commit), "exp": 1900, "keys": offerKeys, "slots": slots,
                "policies": offerPolicies,
            ])
        if isRenewal { edits["offer"]?(&content) }
        return try await message(isRenewal ? "renewal.offer" : "offer", .offer, content)
    }

    /// Refuses a commitment to keys for another offer than the last one. What a test wants to come late has come now.
    func requireLast(_ body: CommitBody, of offers: [String]) throws {
        if lateStarts > 0 {
            lateStarts -= 1
            throw Refusal(status: 409, code: "hash_mismatch")
        }
        #expect(offers.last.map { body.offer == .offer($0) } == true)
    }

    private nonisolated func field(_ name: String) throws -> HTTPField.Name { try #require(HTTPField.Name(name)) }

    func deviceKey() throws -> ProtocolKey { try #require(device) }

    private func act(_ path: String, _ plaintext: [UInt8], request: SigningHash) async throws -> String {
        if let answer = try await actOnSlots(path, plaintext, request: request) { return answer }
        if let answer = try await actOnRenewal(path, plaintext, request: request) { return answer }
        switch path {
        case "/device/provision/commit":
            let body = try CommitBody(plaintext: plaintext)
            try requireLast(body, of: offers)
            commitments.insert(body.commitment)
            guard commitment == nil || commitment == body.commitment else {
                throw Refusal(status: 409, code: "commitment_changed")
            }
            commitment = body.commitment
            return try await message(
                "nonce", .nonce, reply(request, ["nonceS": .string(nonceS.text), "sub": .string(sub), "user": "ana"]))
        case "/device/provision/complete": return try await complete(CompleteBody(plaintext: plaintext), request)
        case "/device/provision/confirm":
            let body = try ConfirmBody(plaintext: plaintext)
            guard body.echo == echo else { throw Refusal(status: 400, code: "invalid_request") }
            hasConfirmed = true
            activate()
            return try await status(request)
        case "/device/status": return try await status(request)
        case "/device/update":
            updates.append(try UpdateBody(plaintext: plaintext))
            return try await status(request)
        case "/device/delete":
            _ = try DeleteBody(plaintext: plaintext)
            state = .revoked
            return try await status(request)
        case "/device/transactions/list":
            var ids: [JSONValue] = []
            for transaction in transactions where transaction.isOpen {
                ids.append(.string(try await ticket(transaction.txn)))
            }
            let list = try await message("list", .list, reply(request, ["ids": .array(ids), "more": false]))
            return try seal(list)
        case "/device/transactions/fetch": return try await fetch(FetchBody(plaintext: plaintext).txn, request)
        // Whatever the device asks, the document is the same: an edit of it has to say what was asked.
        case "/device/transactions/create": return try await fetch(ask(), request)
        case "/device/transactions/decide": return try await decide(DecideBody(plaintext: plaintext))
        default: throw Refusal(status: 404, code: "invalid_request")
        }
    }

    private func complete(_ body: CompleteBody, _ request: SigningHash) async throws -> String {
        enrolments.insert(body.enrol)
        let enrol = try UnverifiedMessage<Enrolment>(body.enrol).verifiedByItself().content
        #expect(enrol.signer == device && enrol.nonceS == nonceS && enrol.sub == sub && enrol.did == did)
        #expect(offers.map { SigningHash.offer($0) }.contains(enrol.offer))
        #expect(SigningHash.commitment(nonceD: enrol.nonceD, keys: enrol.keyList) == commitment)
        for key in enrol.keys {
            guard let proof = key.possession else { continue }
            let content = try SignedMessage<KeyPossession>(proof, key: key.jwk).content
            #expect(content.device == device?.thumbprint && content.kid == key.kid && content.nonceS == nonceS)
        }
        enrolment = enrol
        let enrolled = try await message(
            "enrolled", .enrolled,
            reply(
                request,
                [
                    "state": "UNCONFIRMED", "serial": "10023", "name": .string(body.name ?? "Device"), "exp": 80_000,
                    "renew": 70_000, "echo": .string(echo.text),
                    "handle": .string(Base64URL.encode(handle.revealBytes())),
                    "otp": [],
                ]))
        return try seal(enrolled)
    }

    func status(_ request: SigningHash) async throws -> String {
        try await message(
            renewal?.enrolment == nil ? "status" : "renewal.status", .status,
            reply(
                request,
                [
                    "did": .string(did.text), "state": .string(state.rawValue), "approvals": 1000, "exp": 80_000,
                    "keys": renewedKeys, "slots": slotStatus,
                    "pending": .integer(transactions.count(where: \.isOpen)),
                ]))
    }

    private func fetch(_ txn: SigningID, _ request: SigningHash) async throws -> String {
        guard let index = transactions.firstIndex(where: { $0.txn == txn }) else {
            throw Refusal(status: 404, code: "tx_unknown")
        }
        let enrolment = try #require(enrolment)
        let device = JSONValue.string(enrolment.device.kid.text)
        let sign = try #require(enrolment.keys.first { $0.usage == .sign }).kid.text
        let document: String
        if let stored = transactions[index].document {
            document = stored
        } else {
            document = try await message(
                "document", .document,
                [
                    "v": 1, "iss": .string(issuer), "aud": .string(did.text), "iat": 1000, "exp": 1400,
                    "txn": .string(txn.text), "sub": .string(sub), "kind": "transaction",
                    "rp": ["id": "shop", "name": "Example Shop"], "locale": "en", "title": "Confirm payment",
                    "text": "Pay 200.00 EUR to Bob",
                    "fields": [["id": "to", "label": "To", "type": "party", "value": "Bob", "display": "Bob"]],
                    "statuses": [
                        [
                            "name": "accept", "label": "Approve", "effect": "approve", "kids": [.string(sign)],
                            "reason": "none",
                        ],
                        ["name": "deny", "label": "Decline", "effect": "deny", "kids": [device], "reason": "none"],
                        [
                            "name": "report", "label": "That was not me", "effect": "report", "kids": [device],
                            "reason": "optional",
                        ],
                    ], "req": .string(SigningHash.details("[]").text),
                    "nonce": .string(SigningID(random: SystemRandom()).text),
                    "match": ["mode": "number", "digits": 2],
                ])
            transactions[index].document = document
        }
        return try seal(try await message("fetched", .fetched, reply(request, ["txd": .string(document)])))
    }

    private func decide(_ body: DecideBody) async throws -> String {
        let enrolment = try #require(enrolment)
        decisions.insert(body.decision)
        let unverified = try UnverifiedMessage<Decision>(body.decision)
        let key = try #require(enrolment.keys.first { $0.kid == unverified.kid })
        let decision = try unverified.verified(with: key.jwk).content
        guard let index = transactions.firstIndex(where: { $0.txn == decision.txn }) else {
            throw Refusal(status: 404, code: "tx_unknown")
        }
        if let receipt = transactions[index].receipt {
            guard transactions[index].decision == body.decision else {
                throw Refusal(status: 409, code: "already_decided")
            }
            return receipt
        }
        guard transactions[index].isOpen else { throw Refusal(status: 410, code: "tx_failed") }
        if key.usage == .device {
            #expect(body.possession == nil)
        } else {
            let compact = try #require(body.possession)
            let possession = try SignedMessage<Possession>(compact, key: enrolment.device.jwk).content
            #expect(possession.decision == .decision(body.decision) && possession.txn == decision.txn)
        }
        if !decision.isBlind {
            let document = try #require(transactions[index].document)
            let content = try UnverifiedMessage<TransactionDocument>(document).content
            #expect(content.mismatch(with: decision, compact: document, signer: key.kid) == nil)
            if key.slot != nil, let index = slots.firstIndex(where: { $0.slot == key.slot && $0.mode == .assisted }) {
                try slots[index].take(decision.unl, for: SigningHash.decision(body.decision).text, time)
            } else {
                #expect(decision.unl == nil)
            }
            guard decision.match.map({ $0 == "42" }) ?? true else {
                transactions[index].hasFailed = true
                throw Refusal(status: 403, code: "match_wrong")
            }
        }
        var content: JSONObject = [
            "v": 1, "iss": .string(issuer), "aud": .string(did.text), "iat": .integer(time),
            "txn": .string(decision.txn.text), "sub": .string(sub), "rp": "shop",
            "req": .string(SigningHash.details("[]").text),
        ]
        content["txh"] = decision.document.map { .string($0.text) }
        content["dh"] = .string(SigningHash.decision(body.decision).text)
        content["status"] = .string(decision.status)
        content["effect"] = .string(decision.effect.rawValue)
        content["state"] = .string(decision.effect.state.rawValue)
        content["kid"] = .string(key.kid.text)
        content["device"] = .string(enrolment.device.kid.text)
        content["keyState"] = "ACTIVE"
        content["since"] = 1000
        content["record"] = .string(SigningHash.record("record").text)
        content["amr"] = ["pop"]
        content["match"] = decision.match == nil ? nil : true
        content["audit"] = "5e6a0e2c-5a44-4c2e-8a63-0b2ac0b1f3f2"
        let receipt = try await message("receipt", .receipt, content)
        transactions[index].decision = body.decision
        transactions[index].receipt = receipt
        transactions[index].effect = decision.effect.rawValue
        return receipt
    }

    // MARK: Messages

    func reply(_ request: SigningHash, audience: String? = nil, _ members: JSONObject) -> JSONObject {
        let head: JSONObject = [
            "v": 1, "iss": .string(issuer), "aud": .string(audience ?? did.text), "iat": .integer(time),
            "rqh": .string(request.text),
        ]
        return JSONObject(head.members + members.members)
    }

    func message(_ name: String, _ type: MessageType, _ content: JSONObject) async throws -> String {
        var content = content
        edits[name]?(&content)
        let kid = try ProtocolKey(online).thumbprint.text
        return try await signed(type, content, kid: kid, with: signers[name] ?? online)
    }

    func seal(_ message: String, to enrolment: Enrolment? = nil) throws -> String {
        let transport = try #require(enrolment ?? self.enrolment).transport
        return try SealedEnvelope.seal(
            Array(message.utf8), to: transport.jwk, content: .reply, sender: issuer, recipient: did.text)
    }
}
