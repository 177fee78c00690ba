import AssentCore
import AssentStore
import Crypto

/// The steps in the store.
struct StepStore: Sendable {
    private let context: EngineContext
    private let answerKey: Secret

    /// Seconds for which the same answer gets the same reply again, by the clock that all nodes share.
    static let replyRetention: Int64 = 30

    /// Seconds for which a claim is valid, by the clock that all nodes share; a process that has died does not hold a
    /// step for longer.
    static let claimLease: Int64 = 30

    init(_ context: EngineContext) {
        self.context = context
        answerKey = context.masterKey.derivedSecret(for: .journeyAnswer)
    }

    /// The step, or `nil` when there is none.
    func find(_ id: String) async throws -> StoredStep? {
        let rows = try await context.database.run(
            .read("SELECT *, \(context.sharedTime) AS read_at FROM journey_steps WHERE id = \(id)"))
        guard let row = rows.first else { return nil }
        let status: StoredStep.Status =
            if let answeredAt = try row.optionalInteger("answered_at") {
                .answered(
                    .init(
                        digest: try row.text("answer"), age: try row.integer("read_at") - answeredAt,
                        sealedReply: try row.blob("sealed_reply")))
            } else {
                .pending(sealedState: try row.blob("sealed_state"))
            }
        return StoredStep(id: id, expiresAt: try row.integer("expires_at"), status: status)
    }

    /// The statement that stores a new step.
    func inserting(_ state: JourneyState, id: String) throws -> SQLStatement {
        let sealed = try context.masterKey.seal(
            Secret(bytes: state.json.serializedBytes()), for: .journeyState, context: "state \(id)")
        return SQLStatement(
            """
            INSERT INTO journey_steps (id, created_at, expires_at, sealed_state)
            VALUES (\(id), \(context.clock.epochSeconds), \(state.expiresAt), \(sealed))
            """,
            expecting: .exactly(1))
    }

    /// The state of a step that waits.
    func state(_ sealed: [UInt8], id: String) throws -> JourneyState {
        let opened = try context.masterKey.open(sealed, for: .journeyState, context: "state \(id)")
        return try JourneyState(JSONValue.parse(opened.revealBytes()))
    }

    /// The reply to a step that was answered.
    func reply(_ sealed: [UInt8], id: String) throws -> StoredReply {
        try StoredReply(context.masterKey.open(sealed, for: .journeyState, context: "reply \(id)"))
    }

    /// What an answer is recognised by: a keyed digest of all its bytes. Without the key it says nothing, not even
    /// about a short password.
    func digest(of body: [UInt8], id: String) -> String {
        let code = HMAC<SHA256>.authenticationCode(for: Array(id.utf8) + [0] + body, using: answerKey.symmetricKey)
        return Base64URL.encode(Array(code))
    }

    /// The id of a page of a transaction's journey. Nobody can guess it without the key, and the server finds it again
    /// when the browser has lost the page.
    func id(ofTransaction transactionID: String, page: Int) -> String {
        digest(of: Array("\(page)".utf8), id: "transaction \(transactionID)")
    }

    /// How many pages of a transaction's journey there are. No number is left out, so that a few looks find the last
    /// one, however often a page has asked again.
    func pages(ofTransaction transactionID: String) async throws -> Int {
        func has(_ page: Int) async throws -> Bool {
            try await find(id(ofTransaction: transactionID, page: page)) != nil
        }
        var (last, missing) = (0, 1)
        while try await has(missing) { (last, missing) = (missing, 2 * missing) }
        while missing - last > 1 {
            let middle = (last + missing) / 2
            if try await has(middle) { last = middle } else { missing = middle }
        }
        return last
    }

    /// Claims a step for one answer: of several that come at once, one gets it. Returns the claim, or `nil`.
    ///
    /// One from a time ahead is of a clock that was set back: it would hold the step until that clock has caught up.
    func claim(_ id: String, digest: String) async throws -> StepClaim? {
        let claim = context.random.token(byteCount: 16)
        let time = context.sharedTime
        let rows = try await context.database.run(
            SQLStatement(
                """
                UPDATE journey_steps SET claim = \(claim), claimed_at = \(time), answer = \(digest)
                WHERE id = \(id) AND answered_at IS NULL AND expires_at > \(context.clock.epochSeconds)
                    AND (claim IS NULL OR claimed_at <= \(time) - \(Self.claimLease)
                        OR claimed_at > \(time) + \(Self.claimLease))
                RETURNING id
                """))
        return rows.isEmpty ? nil : StepClaim(stepID: id, value: claim)
    }

    /// Gives a claim up: the step waits again.
    func release(_ claim: StepClaim) async throws {
        _ = try await context.database.run(
            SQLStatement(
                """
                UPDATE journey_steps SET claim = NULL
                WHERE id = \(claim.stepID) AND claim = \(claim.value) AND answered_at IS NULL
                """))
    }

    /// The statement that ends a step with its reply; it fails unless the claim is still the step's.
    func finishing(_ claim: StepClaim, reply: StoredReply) throws -> SQLStatement {
        let sealed = try context.masterKey.seal(reply.secret, for: .journeyState, context: "reply \(claim.stepID)")
        return SQLStatement(
            """
            UPDATE journey_steps SET answered_at = \(context.sharedTime), sealed_reply = \(sealed),
                sealed_state = \(SQLValue.blob([]))
            WHERE id = \(claim.stepID) AND claim = \(claim.value) AND answered_at IS NULL RETURNING id
            """,
            expecting: .exactly(1))
    }

    /// Deletes the steps that have expired, and the replies that nobody gets again: a session's token may be in them.
    /// Returns how many steps there were.
    ///
    /// A step stays for as long as a node whose clock is behind may look for it.
    func purge() async throws -> Int {
        let time = context.sharedTime
        let latest = context.clock.epochSeconds - Self.replyRetention - NodeClocks.difference
        // First: what must not be read any more is gone also where the deleting takes long.
        try await context.update(
            "journey_steps", set: "sealed_reply = \(SQLValue.blob([]))",
            where: """
                (answered_at <= \(time) - \(Self.replyRetention) OR answered_at > \(time) + \(Self.replyRetention))
                    AND length(sealed_reply) > 0
                """)
        return try await context.delete(from: "journey_steps", where: "expires_at <= \(latest)")
    }
}
