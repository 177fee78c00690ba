import AssentCore
import AssentSigningProtocol
import Testing

/// New keys for a container, as far as the server has come with them.
struct ScriptedRenewal {
    let hasCode: Bool
    let offer: String
    let nonceS = SigningNonce(random: SystemRandom())
    let echo = SigningNonce(random: SystemRandom())
    var commitment: SigningHash?
    var enrolment: Enrolment?
    var isDone = false
    /// Whether the new key is not known any more.
    var isForgotten = false

    init(hasCode: Bool, offer: String) {
        self.hasCode = hasCode
        self.offer = offer
    }
}

extension ScriptedServer {
    /// The key that proves a call: the container's, or a new one that asks whether it is.
    func prover(_ kid: KeyThumbprint) throws -> ProtocolKey {
        if let new = renewal?.enrolment?.device, new.kid == kid {
            guard renewal?.isForgotten == false else { throw Refusal(status: 401, code: "bad_proof") }
            return new.jwk
        }
        return try deviceKey()
    }

    func forgetRenewal(_ isForgotten: Bool = true) { renewal?.isForgotten = isForgotten }

    /// The keys of a container whose keys were replaced.
    var renewedKeys: JSONValue {
        guard renewal?.isDone == true, let enrolment else { return [] }
        return .array(
            enrolment.keys.map {
                KeyStatus(kid: $0.kid, usage: $0.usage, label: $0.label, state: .active).json
            })
    }

    /// Answers the calls of a renewal; `nil` for others.
    func actOnRenewal(_ path: String, _ plaintext: [UInt8], request: SigningHash) async throws -> String? {
        switch path {
        case "/device/renew/start":
            let body = try RenewStartBody(plaintext: plaintext)
            guard body.code.map({ $0 == code }) ?? true else { throw Refusal(status: 404, code: "invalid_code") }
            let offer = try await offer(
                request, to: deviceKey().thumbprint.text, commit: body.code == nil ? "exchange" : "digits",
                slots: renewedSlots(), isRenewal: true)
            renewal = ScriptedRenewal(hasCode: body.code != nil, offer: offer)
            return offer
        case "/device/renew/commit":
            let body = try CommitBody(plaintext: plaintext)
            try requireLast(body, of: [try #require(renewal).offer])
            let commitment = body.commitment
            guard renewal?.commitment.map({ $0 == commitment }) ?? true else {
                throw Refusal(status: 409, code: "commitment_changed")
            }
            renewal?.commitment = commitment
            let nonce = try #require(renewal).nonceS
            return try await message(
                "renewal.nonce", .nonce,
                reply(request, ["nonceS": .string(nonce.text), "sub": .string(sub), "user": "ana"]))
        case "/device/renew/complete": return try await complete(renewing: CompleteBody(plaintext: plaintext), request)
        case "/device/renew/confirm":
            let known = try #require(renewal)
            guard try ConfirmBody(plaintext: plaintext).echo == known.echo else {
                throw Refusal(status: 410, code: "enrolment_void")
            }
            if !known.hasCode, let new = known.enrolment {
                enrolment = new
                device = new.device.jwk
                renewal?.isDone = true
            }
            return try await status(request)
        default: return nil
        }
    }

    private func complete(renewing body: CompleteBody, _ request: SigningHash) async throws -> String {
        let (known, old) = (try #require(renewal), try #require(enrolment))
        let new = try UnverifiedMessage<Enrolment>(body.enrol).verifiedByItself().content
        #expect(new.nonceS == known.nonceS && new.did == did && new.offer == .offer(known.offer))
        #expect(SigningHash.commitment(nonceD: new.nonceD, keys: new.keyList) == known.commitment)
        for compact in body.endorsements ?? [] {
            let endorsement = try SignedMessage<Endorsement>(
                compact, keys: { kid in old.keys.first { $0.kid == kid }?.jwk }
            ).content
            #expect(endorsement.did == did && endorsement.enrol == .enrolment(body.enrol))
        }
        #expect(body.endorsements?.count == 2)
        renewal?.enrolment = new
        let enrolled = try await message(
            "renewal.enrolled", .enrolled,
            reply(
                request,
                [
                    "state": "UNCONFIRMED", "serial": "10023", "name": "Laptop", "exp": 80_000, "renew": 70_000,
                    "echo": .string(known.echo.text), "handle": .string(Base64URL.encode(handle.revealBytes())),
                    "otp": [],
                ]))
        return try seal(enrolled, to: new)
    }
}
