import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Testing

/// The same story with a key behind a PIN whose guesses the server counts.
extension EvidenceStory {
    func withPIN() throws -> EvidenceStory {
        var copy = self
        copy.pin = try ObliviousKey()
        return copy
    }

    var offeredSign: JSONValue {
        pin == nil
            ? ["usage": "sign", "label": "payments", "policy": "device"]
            : ["usage": "sign", "label": "payments", "policy": "pin", "slot": "signing"]
    }

    var offeredSlots: JSONValue {
        guard let pin else { return [] }
        return [
            [
                "slot": "signing", "mode": "assisted", "gen": 0,
                "pk": .string(Base64URL.encode(pin.publicKey.bytes)),
            ]
        ]
    }

    var offeredPolicies: JSONValue {
        let device: JSONValue = ["id": "device", "type": "device"]
        guard pin != nil else { return [device] }
        return [
            device,
            [
                "id": "pin", "type": "password", "mode": "assisted", "kdf": "$scrypt$ln=15,r=8,p=1",
                "password": [
                    "minLength": 4, "maxLength": 12, "sequences": false, "common": false, "history": 0, "minAge": 0,
                    "maxAge": 0, "cache": 0,
                ], "lock": ["type": "counter", "max": 5, "cap": 20, "delays": []],
            ],
        ]
    }

    func enrolledSign(kid: JSONValue, jwk: JSONValue, pop: String) -> JSONValue {
        var key: JSONObject = [
            "usage": "sign", "label": "payments", "kid": kid, "jwk": jwk, "policy": pin == nil ? "device" : "pin",
            "keystore": pin == nil ? "software" : "software+software",
        ]
        key["slot"] = pin == nil ? nil : "signing"
        key["pop"] = .string(pop)
        return .object(key)
    }

    /// The evaluation that opened the key, as it is edited, and what follows from it.
    struct Opened {
        let compact: String
        let confirmation: String
        let unl: String
        let unlock: JSONValue
    }

    func evaluation(_ set: KeySet) async throws -> Opened? {
        guard let pin, !isBlind else { return nil }
        let made = try pin.evaluate(ObliviousInput(Secret("2580")).element)
        let compact = try await message(
            "eval", .evaluation, online,
            [
                "v": 1, "iss": .string(issuer), "aud": .string(Self.id(9)), "iat": 1290, "rqh": .string(Self.nonce(4)),
                "purpose": "unlock", "slot": "signing", "gen": 0,
                "pk": .string(Base64URL.encode(pin.publicKey.bytes)),
                "evaluated": .string(Base64URL.encode(made.evaluated)),
                "proof": .string(Base64URL.encode(made.proof)), "unl": .string(Self.id(4)), "n": 1, "tries": 4,
                "spare": 19, "wait": 0,
            ])
        let content = try UnverifiedMessage<Evaluation>(compact).content
        let (slot, n) = (JSONValue.string(content.slot.rawValue), JSONValue.integer(content.n ?? 1))
        let unl = content.unl?.text ?? Self.id(4)
        let confirmation = try await message(
            "confirm", .confirmation, isConfirmedByDevice ? set.device : set.sign,
            [
                "v": 1, "aud": .string(issuer), "did": .string(Self.id(9)), "slot": slot,
                "gen": .integer(content.generation), "n": n, "unl": .string(unl),
                "eval": .string(SigningHash.evaluation(compact).text),
            ])
        return Opened(
            compact: compact, confirmation: confirmation, unl: unl,
            unlock: [
                "slot": slot, "gen": .integer(content.generation), "n": n,
                "evaluated": .integer(content.head.issuedAt), "confirmed": 1295,
            ])
    }
}
