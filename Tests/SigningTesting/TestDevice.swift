package import AssentCore
package import AssentJOSE
package import AssentSigningProtocol

/// A way to an issuer, for ``TestDevice``: in the process, or over HTTP.
package protocol TestIssuer: Sendable {
    /// The issuer's name.
    var name: String { get }

    /// The issuer's configuration, and a nonce.
    func configuration() async throws -> (bytes: [UInt8], nonce: String)

    /// Sends a call and gives the reply with the next nonce.
    ///
    /// - Throws: ``TestRefusal`` for a problem document.
    func send(_ path: String, proof: String?, body: String) async throws -> String
}

/// What an issuer has refused a call with.
package struct TestRefusal: Error, Equatable {
    /// The problem's code.
    package let code: String

    /// A refusal.
    package init(_ code: String) { self.code = code }
}

/// A device that does what the page says, and lets a test change every step. Nothing that it keeps is safe.
package final class TestDevice: Sendable {
    /// What it knows after it has enrolled.
    package struct Enrolled: Sendable {
        /// The container.
        package let did: SigningID
        /// The user's id.
        package let sub: String
        /// The handle key.
        package let handle: Secret
        /// To be sent back.
        package let echo: SigningNonce
        /// What the user types.
        package let digits: String
        /// The compact `tsp-enrol+jwt`.
        package let enrol: String
    }

    /// The issuer.
    package let issuer: any TestIssuer
    /// Its randomness.
    package let random: any RandomSource = SystemRandom()
    /// The device key.
    package let deviceKey: SoftwareSigningKey
    /// The transport key.
    package let transportKey: SoftwareAgreementKey
    /// The other keys by their labels.
    package let keys = Locked<[String: SoftwareSigningKey]>([:])
    /// What it says that it can do.
    package let modes: [ProtectionMode]
    /// Whether a call that has ended so is made again, with another proof; by default none is.
    package let repeats = Locked<(@Sendable (any Error) -> Bool)>({ _ in false })
    private let stored = Locked<IssuerTrust?>(nil)

    /// A device that has not enrolled.
    package init(_ issuer: any TestIssuer, modes: [ProtectionMode] = [.device]) throws {
        self.issuer = issuer
        self.modes = modes
        deviceKey = try SoftwareSigningKey.generate(.es256)
        transportKey = SoftwareAgreementKey.generate()
    }

    /// A device that is what another one is, at an issuer that is what the other's is.
    package init(_ issuer: any TestIssuer, copying other: TestDevice) {
        self.issuer = issuer
        modes = other.modes
        deviceKey = other.deviceKey
        transportKey = other.transportKey
        let (known, made) = (other.stored.withLock { $0 }, other.keys.withLock { $0 })
        stored.withLock { $0 = known }
        keys.withLock { $0 = made }
    }

    /// Reads the configuration.
    package func trust(_ anchor: IssuerTrust.Anchor = .none) async throws -> IssuerTrust {
        if let known = stored.withLock({ $0 }) { return known }
        let configuration = try IssuerConfiguration(reading: try await issuer.configuration().bytes)
        let trust = try IssuerTrust(configuration, issuer: issuer.name, anchor: anchor)
        stored.withLock { $0 = trust }
        return trust
    }

    /// Has the next call read the configuration anew.
    package func forgetTrust() { stored.withLock { $0 = nil } }

    /// Encrypts a request.
    package func sealed(_ body: [UInt8], sender: String) async throws -> String {
        guard let key = try await trust().encryptionKey else { throw TestRefusal("no encryption key") }
        return try SealedEnvelope.seal(
            body, to: key, content: .request, sender: sender, recipient: issuer.name)
    }

    /// A proof of a call.
    package func proof(
        _ did: SigningID, path: String, body: String, nonce: String? = nil, jti: SigningID? = nil,
        key: SoftwareSigningKey? = nil, method: String = "POST", audience: String? = nil
    ) async throws -> String {
        let fresh = try await issuer.configuration().nonce
        return try await SignedMessage.sign(
            CallProof(
                issuer: audience ?? issuer.name, did: did, method: method, url: issuer.name + "/device/" + path,
                bodyHash: SigningHash(sha256: Array(body.utf8)), nonce: nonce ?? fresh,
                jti: jti ?? SigningID(random: random)), with: key ?? deviceKey
        ).compact
    }

    /// Makes a call, and gives the reply as it was sent with the hash of the request.
    package func call(_ path: String, _ did: SigningID, _ body: some MessagePart) async throws
        -> (reply: String, request: SigningHash)
    {
        while true {
            let sealed = try await sealed(body.encoded(), sender: did.text)
            let proof = try await proof(did, path: path, body: sealed)
            do {
                return (try await issuer.send(path, proof: proof, body: sealed), .request(proof))
            } catch let error {
                guard repeats.withLock({ $0(error) }) else { throw error }
            }
        }
    }

    /// Makes a call whose reply is signed, and verifies it.
    package func ask<Reply: ReplyContent>(
        _ path: String, _ did: SigningID, _ body: some MessagePart, as type: Reply.Type = Reply.self
    ) async throws -> Reply {
        let (reply, request) = try await call(path, did, body)
        return try await trust().reply(reply, as: Reply.self, audience: did.text, request: request).content
    }

    /// Makes a call whose reply is encrypted, too.
    package func askSealed<Reply: ReplyContent>(
        _ path: String, _ did: SigningID, _ body: some MessagePart, as type: Reply.Type = Reply.self
    ) async throws -> Reply {
        let (reply, request) = try await call(path, did, body)
        let opened = try await SealedEnvelope(reply).opened(
            with: transportKey, content: .reply, sender: issuer.name, recipient: did.text)
        return try await trust().reply(
            String(decoding: opened, as: UTF8.self), as: Reply.self, audience: did.text, request: request
        ).content
    }
}

extension TestDevice {
    /// Sends `start`, and gives the offer as it was sent.
    package func start(_ code: InviteCode) async throws -> SignedMessage<Offer> {
        let message = try await SignedMessage.sign(
            Start(
                issuer: issuer.name, code: code, nonce: try await issuer.configuration().nonce,
                jwk: try ProtocolKey(deviceKey), modes: modes, info: ["model": "laptop"]), with: deviceKey)
        return try await start(message.compact)
    }

    /// Sends `start` with this message.
    package func start(_ message: String) async throws -> SignedMessage<Offer> {
        let kid = try ProtocolKey(deviceKey).thumbprint.text
        let body = try await sealed(StartBody(start: message).encoded(), sender: kid)
        var reply: String?
        while reply == nil {
            do {
                reply = try await issuer.send("provision/start", proof: nil, body: body)
            } catch let error {
                guard repeats.withLock({ $0(error) }) else { throw error }
            }
        }
        return try await trust().reply(reply ?? "", as: Offer.self, audience: kid, request: .request(message))
    }

    /// The key list for an offer: makes the keys that are missing.
    package func enrolment(_ offer: Offer, compact: String, nonceD: SigningNonce, nonce: NonceReply?) async throws
        -> Enrolment
    {
        let nonceS = nonce?.nonceS ?? SigningNonce(random: random)
        var list: [EnrolledKey] = []
        for key in offer.keys where key.usage != .otp {
            let jwk: ProtocolKey
            var possession: String?
            switch key.usage {
            case .device: jwk = try ProtocolKey(deviceKey)
            case .transport: jwk = try ProtocolKey(transportKey)
            default:
                let made = try keys.withLock { keys in
                    let made = try keys[key.label] ?? SoftwareSigningKey.generate(.es256)
                    keys[key.label] = made
                    return made
                }
                jwk = try ProtocolKey(made)
                possession = try await SignedMessage.sign(
                    KeyPossession(
                        issuer: issuer.name, did: offer.did, nonceS: nonceS,
                        device: try ProtocolKey(deviceKey).thumbprint, usage: key.usage, label: key.label,
                        kid: jwk.thumbprint), with: made
                ).compact
            }
            guard let software = Keystore(rawValue: key.slot == nil ? "software" : "software+software") else {
                throw TestRefusal("no keystore")
            }
            list.append(
                EnrolledKey(
                    usage: key.usage, label: key.label, kid: jwk.thumbprint, jwk: jwk, policy: key.policy,
                    keystore: software, slot: key.slot, possession: possession))
        }
        return Enrolment(
            issuer: issuer.name, pid: offer.pid, did: offer.did, sub: nonce?.sub ?? "-", offer: .offer(compact),
            nonceD: nonceD, nonceS: nonceS, keys: list)
    }

    /// Enrols as far as the digits.
    package func enrol(
        _ code: InviteCode, pushID: String? = nil, confirms: Bool = true,
        prepare: (Offer) async throws -> Void = { _ in }
    ) async throws -> Enrolled {
        let offer = try await start(code)
        let did = offer.content.did
        try await prepare(offer.content)
        let nonceD = SigningNonce(random: random)
        let before = try await enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nil)
        let nonce: NonceReply = try await ask(
            "provision/commit", did,
            CommitBody(commitment: .commitment(nonceD: nonceD, keys: before.keyList), offer: .offer(offer.compact)))
        let content = try await enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nonce)
        let message = try await SignedMessage.sign(content, with: deviceKey).compact
        let reply: AssentSigningProtocol.Enrolled = try await askSealed(
            "provision/complete", did, CompleteBody(enrol: message, pushId: pushID))
        if confirms {
            let _: ContainerStatus = try await ask("provision/confirm", did, ConfirmBody(echo: reply.echo))
        }
        let digits = content.transcript(identity: try await trust().identity.thumbprint).digits
        return Enrolled(
            did: did, sub: nonce.sub, handle: reply.handle, echo: reply.echo, digits: digits, enrol: message)
    }

    /// Asks how the container stands.
    package func status(_ did: SigningID) async throws -> ContainerStatus { try await ask("status", did, EmptyBody()) }

    /// Asks for open transactions, and gives their ids.
    package func list(_ did: SigningID, wait: Int = 0) async throws -> [Ticket] {
        let list: TransactionList = try await askSealed("transactions/list", did, ListBody(wait: wait))
        let trust = try await trust()
        return try list.tickets.map { try trust.verified($0, as: Ticket.self).content }
    }

    /// Fetches a document, and checks it as every device does.
    package func fetch(_ txn: SigningID, _ enrolled: Enrolled) async throws -> SignedMessage<TransactionDocument> {
        let fetched: Fetched = try await askSealed("transactions/fetch", enrolled.did, FetchBody(txn: txn))
        let document = try await trust().verified(fetched.document, as: TransactionDocument.self)
        var usages = [try ProtocolKey(deviceKey).thumbprint: SigningKeyUsage.device]
        for (label, key) in keys.withLock({ $0 }) {
            usages[try ProtocolKey(key).thumbprint] = label == "sign-in" ? .auth : .sign
        }
        try document.content.check(
            for: DocumentAudience(issuer: issuer.name, did: enrolled.did, sub: enrolled.sub, keys: usages), txn: txn)
        return document
    }

    /// A decision on a document.
    package func decision(
        _ document: SignedMessage<TransactionDocument>, status name: String, number: String? = nil,
        reason: String? = nil, unl: SigningID? = nil
    ) throws -> Decision {
        let content = document.content
        guard let status = content.status(named: name) else { throw TestRefusal("no status") }
        return Decision(
            issuer: issuer.name, did: content.did, sub: content.sub, txn: content.txn, nonce: content.nonce,
            document: .document(document.compact),
            displayed: .displayed(content.displayed(status: status, match: number)), status: name,
            effect: status.effect, reason: reason, match: number, unl: unl, jti: SigningID(random: random))
    }

    /// A refusal of something that was not opened.
    package func blind(_ txn: SigningID, _ enrolled: Enrolled, _ effect: DecisionEffect = .deny) -> Decision {
        Decision(
            issuer: issuer.name, did: enrolled.did, sub: enrolled.sub, txn: txn, isBlind: true,
            status: effect.rawValue, effect: effect, jti: SigningID(random: random))
    }

    /// Signs a decision with a key, and with the device key beside it.
    package func signed(_ decision: Decision, label: String?) async throws -> DecideBody {
        let key = label.flatMap { label in keys.withLock { $0[label] } } ?? deviceKey
        let message = try await SignedMessage.sign(decision, with: key).compact
        guard label != nil else { return DecideBody(decision: message) }
        let possession = try await SignedMessage.sign(
            Possession(
                issuer: issuer.name, did: decision.did, txn: decision.txn, decision: .decision(message)),
            with: deviceKey)
        return DecideBody(decision: message, possession: possession.compact)
    }

    /// Sends a decision, and gives the receipt after its checks.
    package func decide(_ body: DecideBody, _ enrolled: Enrolled) async throws -> SignedMessage<Receipt> {
        let (reply, _) = try await call("transactions/decide", enrolled.did, body)
        let receipt = try await trust().verified(reply, as: Receipt.self)
        guard receipt.content.decision == .decision(body.decision), receipt.content.did == enrolled.did else {
            throw TestRefusal("a receipt for something else")
        }
        return receipt
    }

    /// Fetches, and approves.
    package func approve(_ txn: SigningID, _ enrolled: Enrolled, label: String = "payments", number: String? = nil)
        async throws -> SignedMessage<Receipt>
    {
        let document = try await fetch(txn, enrolled)
        let body = try await signed(try decision(document, status: "accept", number: number), label: label)
        return try await decide(body, enrolled)
    }
}
