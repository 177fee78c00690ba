import AssentCore
import AssentSigningProtocol

/// A password slot as the page's section "Password slot" has it, for one node and in memory.
struct ScriptedSlot {
    struct Confirmed {
        let unl: SigningID
        let evaluatedAt: Int
        let confirmedAt: Int
        var taken: String?
    }

    let slot: PasswordSlot
    let mode: PasswordMode
    var max = 5
    var cap = 20
    var delays: [Int] = []
    /// *k*.
    var key: ObliviousKey?
    /// *k'* of a change.
    var pending: ObliviousKey?
    /// *k* of a renewal.
    var renewed: ObliviousKey?
    var generation = 0
    var n = 0
    var floor = 0
    var unconfirmed = 0
    var cleared = 0
    var nextAt = 0
    var forgiveAfter: Int?
    var request: SigningID?
    var blinded: [UInt8] = []
    var current: SigningHash?
    var next: SigningHash?
    var confirmed: [Int: Confirmed] = [:]
    var ids: [Int: SigningID] = [:]
    /// How often a password was evaluated for an enrolment.
    var enrolments = 0

    init(slot: PasswordSlot, mode: PasswordMode) throws {
        self.slot = slot
        self.mode = mode
        key = mode == .assisted ? try ObliviousKey() : nil
    }

    /// As an offer has it.
    func offered(_ generation: Int, _ key: ObliviousKey?) -> JSONValue {
        var offered: JSONObject = [
            "slot": .string(slot.rawValue), "mode": .string(mode.rawValue), "gen": .integer(generation),
        ]
        offered["pk"] = key.map { .string(Base64URL.encode($0.publicKey.bytes)) }
        return .object(offered)
    }

    func status(_ time: Int) -> SlotStatus {
        SlotStatus(
            slot: slot, generation: generation, state: key == nil ? .shredded : n - floor >= max ? .locked : .open,
            tries: Swift.max(0, max - n + floor), spare: Swift.max(0, cap - unconfirmed),
            wait: Swift.max(0, nextAt - time))
    }

    /// Counts, or says why not.
    mutating func unlock(_ body: UnlockBody, last: Evaluation?, _ time: Int) throws {
        let hash = SigningHash.ratchet(body.r)
        let isSame = request == body.rid && blinded == body.blinded
        guard key != nil else { throw ScriptedServer.Refusal(status: 410, code: "shredded") }
        guard body.generation == generation else { throw ScriptedServer.Refusal(status: 409, code: "wrong_generation") }
        if let last, last.generation == generation, let number = last.n, number > n {
            throw ScriptedServer.Refusal(status: 409, code: "server_rolled_back")
        }
        if let current, hash != next, !(hash == current && (next == nil || next == body.next)) {
            throw ScriptedServer.Refusal(status: 403, code: "container_suspect")
        }
        if !isSame {
            if unconfirmed >= cap {
                key = nil
                throw ScriptedServer.Refusal(status: 403, code: "locked")
            }
            guard n - floor < max else { throw ScriptedServer.Refusal(status: 403, code: "locked") }
            guard nextAt <= time else { throw ScriptedServer.Refusal(status: 429, code: "wait") }
            n += 1
            unconfirmed += 1
            ids[n] = SigningID(random: SystemRandom())
            let tried = n - floor
            nextAt = time + (delays.isEmpty ? 0 : delays[min(tried, delays.count) - 1])
        }
        (request, blinded, current, next) = (body.rid, body.blinded, hash, body.next)
    }

    mutating func confirm(_ evaluation: Evaluation, _ time: Int) throws {
        guard let number = evaluation.n, let unl = evaluation.unl, number <= n else {
            throw ScriptedServer.Refusal(status: 409, code: "server_rolled_back")
        }
        guard confirmed[number] == nil else { return }
        confirmed[number] = Confirmed(unl: unl, evaluatedAt: evaluation.head.issuedAt, confirmedAt: time)
        if let after = forgiveAfter, number > after {
            (unconfirmed, cleared, forgiveAfter) = (n - number, number, nil)
        } else if number > cleared {
            unconfirmed -= 1
        }
        floor = Swift.max(floor, number)
        if n == number { nextAt = 0 }
    }

    /// Spends a confirmed evaluation of the last five minutes.
    mutating func take(_ unl: SigningID?, for use: String, _ time: Int) throws {
        guard let unl, let number = confirmed.first(where: { $0.value.unl == unl })?.key, let one = confirmed[number],
            one.taken == nil || one.taken == use, one.evaluatedAt > time - 300
        else { throw ScriptedServer.Refusal(status: 403, code: "unlock_required") }
        confirmed[number]?.taken = use
    }

    /// The user has authenticated.
    mutating func unlockByUser() {
        (floor, forgiveAfter, nextAt) = (n, n, 0)
    }
}
