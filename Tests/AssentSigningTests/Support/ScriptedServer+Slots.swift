import AssentCore
import AssentSigningProtocol
import Testing

extension ScriptedServer {
    /// What a test says about a password.
    struct PasswordOffer: Sendable {
        var mode: PasswordMode
        var slot = PasswordSlot.signing
        var rules: JSONObject = [
            "minLength": 4, "maxLength": 12, "sequences": false, "common": false, "history": 0, "minAge": 0,
            "maxAge": 0, "cache": 0,
        ]
        var lock: JSONObject = ["type": "counter", "max": 5]

        init(_ mode: PasswordMode, slot: PasswordSlot = .signing, _ change: (inout PasswordOffer) -> Void = { _ in }) {
            self.mode = mode
            self.slot = slot
            if mode == .assisted {
                lock["cap"] = 20
                lock["delays"] = []
            }
            change(&self)
        }
    }

    /// Offers keys behind passwords.
    func offer(_ passwords: PasswordOffer...) throws {
        slots = []
        var policies: [JSONValue] = [["id": "device", "type": "device"]]
        for password in passwords {
            var slot = try ScriptedSlot(slot: password.slot, mode: password.mode)
            slot.max = password.lock["max"]?.integer.map { Int($0) } ?? 5
            slot.cap = password.lock["cap"]?.integer.map { Int($0) } ?? 20
            slot.delays = (password.lock["delays"]?.array ?? []).compactMap { $0.integer.map { Int($0) } }
            slots.append(slot)
            policies.append([
                "id": .string(password.slot.rawValue), "type": "password", "mode": .string(password.mode.rawValue),
                "kdf": "$scrypt$ln=14,r=8,p=1", "password": .object(password.rules), "lock": .object(password.lock),
            ])
        }
        func key(_ usage: String, _ label: String, _ slot: PasswordSlot) -> JSONValue {
            passwords.contains { $0.slot == slot }
                ? [
                    "usage": .string(usage), "label": .string(label), "policy": .string(slot.rawValue),
                    "slot": .string(slot.rawValue),
                ] : ["usage": .string(usage), "label": .string(label), "policy": "device"]
        }
        offerKeys = [
            ["usage": "device", "label": "device", "policy": "device"], key("transport", "transport", .session),
            key("sign", "payments", .signing), key("auth", "sign-in", .signing),
        ]
        offerPolicies = .array(policies)
    }

    /// Changes what the server keeps of a password.
    func edit(_ slot: PasswordSlot, _ change: @Sendable (inout ScriptedSlot) -> Void) {
        for index in slots.indices where slots[index].slot == slot { change(&slots[index]) }
    }

    var signingSlot: ScriptedSlot? { slots.first { $0.slot == .signing } }

    var offeredSlots: JSONValue { .array(slots.map { $0.offered($0.generation, $0.key) }) }

    /// The slots of a renewal: with other keys, under the next generation.
    func renewedSlots() throws -> JSONValue {
        for index in slots.indices where slots[index].mode == .assisted { slots[index].renewed = try ObliviousKey() }
        return .array(slots.map { $0.offered($0.generation + 1, $0.renewed) })
    }

    var slotStatus: JSONValue { .array(slots.filter { $0.mode == .assisted }.map { $0.status(time).json }) }

    private func index(_ slot: PasswordSlot) throws -> Int {
        guard let index = slots.firstIndex(where: { $0.slot == slot && $0.mode == .assisted }) else {
            throw Refusal(status: 400, code: "invalid_request")
        }
        return index
    }

    private func evaluated(
        _ key: ObliviousKey?, _ blinded: [UInt8], _ purpose: EvaluationPurpose, _ slot: PasswordSlot,
        _ generation: Int, _ request: SigningHash, _ members: JSONObject = [:]
    ) async throws -> String {
        guard let key else { throw Refusal(status: 410, code: "shredded") }
        let evaluation = try key.evaluate(ObliviousElement(blinded))
        let content: JSONObject = [
            "purpose": .string(purpose.rawValue), "slot": .string(slot.rawValue), "gen": .integer(generation),
            "pk": .string(Base64URL.encode(key.publicKey.bytes)),
            "evaluated": .string(Base64URL.encode(evaluation.evaluated)),
            "proof": .string(Base64URL.encode(evaluation.proof)),
        ]
        return try await message(
            "eval", .evaluation, reply(request, JSONObject(content.members + members.members)))
    }

    /// Answers the calls of the PIN; `nil` for others.
    func actOnSlots(_ path: String, _ plaintext: [UInt8], request: SigningHash) async throws -> String? {
        switch path {
        case "/device/provision/evaluate":
            let body = try EvaluateBody(plaintext: plaintext)
            let index = try index(body.slot)
            guard commitment == nil else { throw Refusal(status: 400, code: "invalid_request") }
            slots[index].enrolments += 1
            guard slots[index].enrolments <= 5 else { throw Refusal(status: 429, code: "rate_limited") }
            return try await evaluated(
                slots[index].key, body.blinded, .enrol, body.slot, body.generation, request,
                ["left": .integer(5 - slots[index].enrolments)])
        case "/device/renew/evaluate":
            let body = try EvaluateBody(plaintext: plaintext)
            return try await evaluated(
                slots[index(body.slot)].renewed, body.blinded, .enrol, body.slot, body.generation, request,
                ["left": 4])
        case "/device/slots/unlock": return try await unlock(UnlockBody(plaintext: plaintext), request)
        case "/device/slots/confirm":
            let body = try ConfirmEvaluationBody(plaintext: plaintext)
            let evaluation = try UnverifiedMessage<Evaluation>(body.evaluation).verified(with: onlineKeys()).content
            let confirmation = try signedBySlot(body.confirmation, as: EvaluationConfirmation.self)
            #expect(confirmation.evaluation == .evaluation(body.evaluation) && confirmation.did == did)
            #expect(confirmation.n == evaluation.n && confirmation.unl == evaluation.unl)
            try slots[index(evaluation.slot)].confirm(evaluation, time)
            return try await status(request)
        case "/device/slots/change-start":
            let body = try ChangeStartBody(plaintext: plaintext)
            let change = try signedBySlot(body.change, as: PasswordChange.self)
            let index = try index(change.slot)
            guard change.step == .start, change.from == slots[index].generation, slots[index].key != nil else {
                throw Refusal(status: 409, code: "wrong_generation")
            }
            try slots[index].take(change.unl, for: "change:\(change.from)", time)
            slots[index].pending = try ObliviousKey()
            return try await evaluated(slots[index].pending, body.blinded, .change, change.slot, change.to, request)
        case "/device/slots/change-commit":
            let change = try signedBySlot(ChangeCommitBody(plaintext: plaintext).change, as: PasswordChange.self)
            let index = try index(change.slot)
            if change.to != slots[index].generation || slots[index].pending != nil {
                guard change.step == .commit, change.from == slots[index].generation,
                    let pending = slots[index].pending, change.publicKey == pending.publicKey.bytes
                else { throw Refusal(status: 409, code: "wrong_generation") }
                slots[index].key = slots[index].pending
                slots[index].pending = nil
                slots[index].generation = change.to
            }
            return try await status(request)
        default: return nil
        }
    }

    private func onlineKeys() throws -> ProtocolKey { try ProtocolKey(online) }

    private func signedBySlot<Content: SignedContent>(
        _ compact: String, as type: Content.Type
    ) throws -> Content {
        let message = try UnverifiedMessage<Content>(compact)
        let key = try #require(enrolment?.keys.first { $0.kid == message.kid && $0.slot == .signing })
        return try message.verified(with: key.jwk).content
    }

    private func unlock(_ body: UnlockBody, _ request: SigningHash) async throws -> String {
        let index = try index(body.slot)
        guard state == .active else { throw Refusal(status: 403, code: "container_\(state.rawValue.lowercased())") }
        let last = try body.last.map { try UnverifiedMessage<Evaluation>($0).content }
        do {
            try slots[index].unlock(body, last: last, time)
        } catch let refusal as Refusal {
            if refusal.code == "container_suspect" { state = .suspect }
            throw refusal
        }
        let slot = slots[index]
        return try await evaluated(
            slot.key, body.blinded, .unlock, body.slot, body.generation, request,
            [
                "unl": .string(try #require(slot.ids[slot.n]).text), "n": .integer(slot.n),
                "tries": .integer(slot.max - slot.n + slot.floor), "spare": .integer(slot.cap - slot.unconfirmed),
                "wait": .integer(max(0, slot.nextAt - time)),
            ])
    }
}
