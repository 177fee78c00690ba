import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Testing

/// Makes a bundle of evidence message by message. Each message's content can be edited before it is signed, and what
/// comes later (hashes) follows the edited text, so that only what is edited is wrong.
struct EvidenceStory: Sendable {
    typealias Edit = @Sendable (inout JSONObject) -> Void

    let issuer = "https://am.example/signing"
    let identities: [SoftwareSigningKey]
    let online: SoftwareSigningKey
    let device: SoftwareSigningKey
    let transport: SoftwareAgreementKey
    let sign: SoftwareSigningKey
    let newDevice: SoftwareSigningKey
    let newSign: SoftwareSigningKey
    let thief: SoftwareSigningKey

    var edits: [String: Edit] = [:]
    var signers: [String: SoftwareSigningKey] = [:]
    var isBlind = false
    /// Whether a key that approves signs the blind refusal, as if it were the device key.
    var isBlindBySign = false
    /// Whether the device key's possession is there though it has signed the decision itself.
    var hasOwnPossession = false
    /// How often the container has had new keys.
    var renewals = 0
    var hasRenewal: Bool {
        get { renewals > 0 }
        set { renewals = newValue ? 1 : 0 }
    }
    /// The key of the PIN's slot, when the key that signs is behind one.
    var pin: ObliviousKey?
    /// Whether the device key confirms the evaluation, as if it were a key of the slot.
    var isConfirmedByDevice = false
    var details = #"[{"amount":"1"}]"#

    static func id(_ byte: UInt8) -> String { Base64URL.encode([UInt8](repeating: byte, count: 16)) }
    static func nonce(_ byte: UInt8) -> String { Base64URL.encode([UInt8](repeating: byte, count: 32)) }

    init() throws {
        identities = try [.generate(.es256), .generate(.es256), .generate(.es256)]
        (online, device, sign) = try (.generate(.es256), .generate(.es256), .generate(.es256))
        (newDevice, newSign, thief) = try (.generate(.es256), .generate(.es256), .generate(.es256))
        transport = .generate()
    }

    func edited(_ name: String, _ edit: @escaping Edit) -> EvidenceStory {
        var copy = self
        copy.edits[name] = edit
        return copy
    }

    func signed(_ name: String, by key: SoftwareSigningKey) -> EvidenceStory {
        var copy = self
        copy.signers[name] = key
        return copy
    }

    func kid(_ key: SoftwareSigningKey) throws -> JSONValue { .string(try ProtocolKey(key).thumbprint.text) }
    func jwk(_ key: SoftwareSigningKey) throws -> JSONValue { try ProtocolKey(key).json }

    func trust(_ index: Int) throws -> KeyThumbprint { try ProtocolKey(identities[index]).thumbprint }

    func message(
        _ name: String, _ type: MessageType, _ key: SoftwareSigningKey, _ content: JSONObject
    ) async throws -> String {
        var content = content
        edits[name]?(&content)
        let signer = signers[name] ?? key
        // The header keeps naming the right key, so that only the signature is the thief's.
        let header: JSONObject = ["alg": "ES256", "typ": .string(type.rawValue), "kid": try kid(key)]
        return try await signRaw(
            header: JSONValue.object(header).serializedBytes(), payload: JSONValue.object(content).serializedBytes(),
            with: signer)
    }

    struct KeySet {
        let sequence: Int
        let device: SoftwareSigningKey
        let sign: SoftwareSigningKey
        var before: (record: String, device: SoftwareSigningKey, sign: SoftwareSigningKey)?
    }

    private func enrolment(_ set: KeySet) async throws -> EvidenceEnrolment {
        let suffix = set.sequence == 0 ? "" : ".renewed"
        let pid = Self.id(UInt8(truncatingIfNeeded: 1 + set.sequence))
        let audience = try kid(set.before?.device ?? set.device)
        let offer = try await message(
            "offer" + suffix, .offer, online,
            [
                "v": 1, "iss": .string(issuer), "aud": audience, "iat": 1000, "rqh": .string(Self.nonce(1)),
                "pid": .string(pid), "did": .string(Self.id(9)), "identity": try kid(identities[0]), "name": "Bank",
                "commit": set.sequence == 0 ? "digits" : "exchange", "exp": 2000,
                "keys": [
                    ["usage": "device", "label": "device", "policy": "device"],
                    ["usage": "transport", "label": "transport", "policy": "device"],
                    offeredSign,
                ], "slots": offeredSlots, "policies": offeredPolicies,
            ])
        let pop = try await message(
            "pop" + suffix, .keyPossession, set.sign,
            [
                "v": 1, "aud": .string(issuer), "did": .string(Self.id(9)), "nonceS": .string(Self.nonce(3)),
                "device": try kid(set.device), "usage": "sign", "label": "payments", "kid": try kid(set.sign),
            ])
        let transportKey = try ProtocolKey(transport)
        let enrol = try await message(
            "enrol" + suffix, .enrolment, set.device,
            [
                "v": 1, "aud": .string(issuer), "pid": .string(pid), "did": .string(Self.id(9)), "sub": "user-1",
                "offer": .string(SigningHash.offer(offer).text), "nonceD": .string(Self.nonce(2)),
                "nonceS": .string(Self.nonce(3)),
                "keys": [
                    [
                        "usage": "device", "label": "device", "kid": try kid(set.device), "jwk": try jwk(set.device),
                        "policy": "device", "keystore": "software",
                    ],
                    [
                        "usage": "transport", "label": "transport", "kid": .string(transportKey.thumbprint.text),
                        "jwk": transportKey.json, "policy": "device", "keystore": "software",
                    ],
                    enrolledSign(kid: try kid(set.sign), jwk: try jwk(set.sign), pop: pop),
                ],
            ])
        var endorsements: [String] = []
        for (name, key) in [("endorse.device", set.before?.device), ("endorse.sign", set.before?.sign)] {
            guard let key else { continue }
            endorsements.append(
                try await message(
                    name, .endorsement, key,
                    [
                        "v": 1, "aud": .string(issuer), "did": .string(Self.id(9)),
                        "enrol": .string(SigningHash.enrolment(enrol).text), "jti": .string(Self.id(8)),
                    ]))
        }
        let content = try UnverifiedMessage<Enrolment>(enrol).content
        let transcript = try content.transcript(identity: ProtocolKey(identities[0]).thumbprint)
        var record: JSONObject = [
            "v": 1, "iss": .string(issuer), "aud": .string(Self.id(9)), "iat": .integer(1100 + min(set.sequence, 1)),
            "pid": .string(pid), "sub": "user-1", "seq": .integer(set.sequence), "user": "ana",
            "identity": try kid(identities[0]), "enrol": .string(SigningHash.enrolment(enrol).text),
            "transcript": .string(transcript.hash.text), "commit": set.sequence == 0 ? "digits" : "exchange",
            "by": set.sequence == 0 ? ["invite"] : ["device", "sign"], "approvals": 1100,
            "keys": .array(content.keys.map { .string($0.kid.text) }),
        ]
        if let before = set.before?.record { record["prev"] = .string(SigningHash.record(before).text) }
        return EvidenceEnrolment(
            record: try await message("record" + suffix, .record, online, record), enrol: enrol, offer: offer,
            endorsements: endorsements)
    }

    private func document(_ sign: SoftwareSigningKey, _ device: SoftwareSigningKey) async throws -> String {
        try await message(
            "txd", .document, online,
            [
                "v": 1, "iss": .string(issuer), "aud": .string(Self.id(9)), "iat": 1200, "exp": 1400,
                "txn": .string(Self.id(5)), "sub": "user-1", "kind": "transaction",
                "rp": ["id": "shop", "name": "Shop"], "locale": "en", "title": "Confirm payment",
                "fields": [["id": "to", "label": "To", "type": "party", "value": "Bob", "display": "Bob"]],
                "statuses": [
                    [
                        "name": "accept", "label": "Approve", "effect": "approve", "kids": [try kid(sign)],
                        "reason": "none",
                    ],
                    [
                        "name": "deny", "label": "Decline", "effect": "deny", "kids": [try kid(device)],
                        "reason": "none",
                    ],
                ], "req": .string(SigningHash.details(details).text), "nonce": .string(Self.id(6)),
                "match": ["mode": "number", "digits": 2],
            ])
    }

    private func transaction(_ set: KeySet, _ record: String) async throws -> EvidenceTransaction {
        let txd = isBlind ? nil : try await document(set.sign, set.device)
        let isByDevice = isBlind && !isBlindBySign
        let signer = isByDevice ? set.device : set.sign
        var decision: JSONObject = [
            "v": 1, "aud": .string(issuer), "did": .string(Self.id(9)), "sub": "user-1", "txn": .string(Self.id(5)),
        ]
        var texts: SigningHash?
        if let txd {
            // A document that breaks a rule cannot be read; a device that decides all the same shows nothing of it.
            let content = try? UnverifiedMessage<TransactionDocument>(txd).content
            let status = content?.status(named: "accept")
            texts = SigningHash.displayed(status.flatMap { content?.displayed(status: $0, match: "42") } ?? [])
            decision["nonce"] = .string(content?.nonce.text ?? Self.id(6))
            decision["txh"] = .string(SigningHash.document(txd).text)
        }
        decision["blind"] = isBlind ? true : nil
        decision["dsp"] = texts.map { .string($0.text) }
        decision["status"] = isBlind ? "deny" : "accept"
        decision["effect"] = isBlind ? "deny" : "approve"
        decision["match"] = isBlind ? nil : "42"
        let evaluation = try await evaluation(set)
        decision["unl"] = evaluation.map { .string($0.unl) }
        decision["jti"] = .string(Self.id(7))
        let decided = try await message("decision", .decision, signer, decision)
        let hash = JSONValue.string(SigningHash.decision(decided).text)
        let possession = try await message(
            "possession", .possession, set.device,
            [
                "v": 1, "aud": .string(issuer), "did": .string(Self.id(9)), "txn": .string(Self.id(5)), "dh": hash,
            ])
        var receipt: JSONObject = [
            "v": 1, "iss": .string(issuer), "aud": .string(Self.id(9)), "iat": 1300, "txn": .string(Self.id(5)),
            "sub": "user-1", "rp": "shop", "req": .string(SigningHash.details(details).text),
        ]
        receipt["txh"] = txd.map { .string(SigningHash.document($0).text) }
        receipt["dh"] = hash
        receipt["status"] = isBlind ? "deny" : "accept"
        receipt["effect"] = isBlind ? "deny" : "approve"
        receipt["state"] = isBlind ? "DENIED" : "APPROVED"
        receipt["kid"] = try kid(signer)
        receipt["device"] = try kid(set.device)
        receipt["keyState"] = "ACTIVE"
        receipt["since"] = 1100
        receipt["record"] = .string(SigningHash.record(record).text)
        receipt["amr"] = evaluation == nil ? ["pop"] : ["pop", "pin"]
        receipt["match"] = isBlind ? nil : true
        receipt["unlock"] = evaluation?.unlock
        receipt["audit"] = "5e6a0e2c-5a44-4c2e-8a63-0b2ac0b1f3f2"
        return EvidenceTransaction(
            document: txd, request: SigningHash.detailsFrame(details).bytes, decision: decided,
            possession: isByDevice && !hasOwnPossession ? nil : possession,
            receipt: try await message("receipt", .receipt, online, receipt),
            evaluation: evaluation?.compact, confirmation: evaluation?.confirmation)
    }

    /// The bundle, with the identity keys `range` of three, the online key being certified by the one at `certifier`.
    func bundle(
        identities range: ClosedRange<Int> = 0...0, certifier: Int = 0,
        change: (inout JSONObject) -> Void = { _ in }
    ) async throws -> EvidenceBundle {
        var next: [String] = []
        var previous: [String] = []
        for index in range.dropLast() {
            next.append(
                try await message(
                    "next", .next, identities[index],
                    [
                        "v": 1, "iss": .string(issuer), "iat": 5000, "seq": .integer(index + 1),
                        "jwk": try jwk(identities[index + 1]),
                    ]))
            previous.append(
                try await message(
                    "previous", .previous, identities[index + 1],
                    [
                        "v": 1, "iss": .string(issuer), "iat": 5000, "seq": .integer(index + 1),
                        "jwk": try jwk(identities[index]), "until": 5000,
                    ]))
        }
        let certificate = try await message(
            "cert", .certificate, identities[certifier],
            [
                "v": 1, "iss": .string(issuer), "iat": 900, "exp": 90000, "use": "sig", "gen": 1, "min": 1,
                "jwk": try jwk(online),
            ])
        let first = KeySet(sequence: 0, device: device, sign: sign)
        var enrolments = [try await enrolment(first)]
        var last = first
        for sequence in 0..<renewals {
            last = KeySet(
                sequence: sequence + 1, device: newDevice, sign: newSign,
                before: (enrolments[sequence].record, last.device, last.sign))
            enrolments.append(try await enrolment(last))
        }
        let bundle = EvidenceBundle(
            issuer: issuer, identities: try identities[range].map { try ProtocolKey($0) }, next: next,
            previous: previous, certificates: [certificate], enrolments: enrolments,
            transactions: [try await transaction(last, enrolments[enrolments.count - 1].record)])
        var object = bundle.members
        change(&object)
        return try EvidenceBundle(reading: JSONValue.object(object).serializedBytes())
    }
}
