import AssentCore
import AssentJOSE
import AssentSigningProtocol

/// What a device knows only as long as its process lives.
actor DeviceMemory {
    /// The most decisions whose receipts are remembered.
    private static let receipts = 256

    private var nonces: [String: String] = [:]
    private var decided: [[SigningID]: (decision: String, receipt: SigningReceipt)] = [:]
    private var remembered: [[String]: RememberedPassword] = [:]
    private var failures: [[String]: Duration] = [:]
    private var unsealed: [SigningID: [String: Secret]] = [:]
    private var endorsers: [SigningID: SoftwareSigningKey] = [:]
    private var sessions: [SigningID: OpenSession] = [:]
    private var heard: [SigningID: HeardNotices] = [:]
    private var asking: [SigningID: Int] = [:]

    // MARK: Calls

    /// The newest nonce of an issuer.
    func nonce(of issuer: String) -> String? { nonces[issuer] }

    func keep(nonce: String?, of issuer: String) { nonces[issuer] = nonce }

    /// A decision of a container that has a receipt.
    func decided(_ did: SigningID, _ txn: SigningID) -> (decision: String, receipt: SigningReceipt)? {
        decided[[did, txn]]
    }

    /// For anyone who asks again. The server would find it, too.
    func keep(_ receipt: SigningReceipt, for kept: DecisionRecord) {
        if decided.count >= Self.receipts { decided = [:] }
        decided[[kept.did, kept.txn]] = (kept.decision, receipt)
    }

    // MARK: Passwords

    private func place(_ id: SigningID, _ slot: PasswordSlot) -> [String] { [id.text, slot.rawValue] }

    /// Remembers a password that was right.
    func remember(_ password: RememberedPassword, _ id: SigningID, _ slot: PasswordSlot) {
        remembered[place(id, slot)] = password
    }

    /// What is remembered, which is one use of it.
    func takeRemembered(_ id: SigningID, _ kept: SlotRecord, at now: Duration) -> Secret? {
        let place = place(id, kept.slot)
        guard var entry = remembered[place], entry.uses > 0, now < entry.until,
            entry.generation == kept.current.generation
        else {
            remembered[place] = nil
            return nil
        }
        entry.uses -= 1
        remembered[place] = entry.uses > 0 ? entry : nil
        return entry.s
    }

    func isRemembered(_ id: SigningID, _ slot: PasswordSlot, at now: Duration) -> Bool {
        remembered[place(id, slot)].map { $0.uses > 0 && now < $0.until } ?? false
    }

    /// Forgets what is remembered of one password, or of all of a container.
    func forget(_ id: SigningID, _ slot: PasswordSlot? = nil) {
        for one in PasswordSlot.allCases where slot == nil || one == slot { remembered[place(id, one)] = nil }
        if slot == nil || slot == .session { sessions[id] = nil }
    }

    /// When a `local` password was wrong last; zero if it was not while this process lives.
    func lastFailure(_ id: SigningID, _ slot: PasswordSlot) -> Duration { failures[place(id, slot)] ?? .zero }

    func keep(failure: Duration?, _ id: SigningID, _ slot: PasswordSlot) { failures[place(id, slot)] = failure }

    /// The open key of a session.
    func session(_ id: SigningID) -> OpenSession? { sessions[id] }

    func keep(_ session: OpenSession?, _ id: SigningID) { sessions[id] = session }

    // MARK: New keys

    /// Private keys that an enrolment or a renewal has sealed and still needs, by label: they cannot be opened again
    /// before it is complete. `nil` when this process has not made them.
    func unsealedKeys(_ id: SigningID) -> [String: Secret]? { unsealed[id] }

    /// Adds to them; the newer ones stay.
    func keep(unsealed keys: [String: Secret], _ id: SigningID) {
        unsealed[id, default: [:]].merge(keys) { _, new in new }
    }

    /// The old key behind a password that is to vouch for new ones.
    func endorser(_ id: SigningID) -> SoftwareSigningKey? { endorsers[id] }

    func keep(endorser key: SoftwareSigningKey?, _ id: SigningID) { endorsers[id] = key }

    /// Forgets what only new keys on their way need.
    func forgetNewKeys(_ id: SigningID) {
        unsealed[id] = nil
        endorsers[id] = nil
    }

    /// Whether a renewal waits for its user to type a password.
    func isAsking(_ id: SigningID) -> Bool { asking[id] != nil }

    func beginAsking(_ id: SigningID) { asking[id, default: 0] += 1 }

    func endAsking(_ id: SigningID) {
        let left = (asking[id] ?? 1) - 1
        asking[id] = left > 0 ? left : nil
    }

    // MARK: Notices

    /// What the next list tells the server not to send again.
    func receivedNotices(_ id: SigningID) -> [SigningID] { heard[id]?.received ?? [] }

    /// Keeps what came with a list.
    func hear(_ notices: [Notice], _ id: SigningID) {
        var heard = heard[id] ?? HeardNotices()
        for notice in notices where !heard.received.contains(notice.id) {
            heard.waiting.append(SigningNotice(notice))
        }
        heard.waiting = heard.waiting.suffix(HeardNotices.limit)
        heard.received = notices.map(\.id)
        self.heard[id] = heard
    }

    /// What was heard since the last time.
    func takeNotices(_ id: SigningID) -> [SigningNotice] {
        defer { heard[id]?.waiting = [] }
        return heard[id]?.waiting ?? []
    }
}
