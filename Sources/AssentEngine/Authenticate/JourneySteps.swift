import AssentCore
import AssentStore
import Crypto

/// The stored steps of journeys: each is answered once.
struct JourneySteps: Sendable {
    private let context: EngineContext
    private let answerKey: Secret

    /// Seconds for which the same answer gets the same reply again.
    static let replyRetention: Int64 = 30

    /// Seconds after which a claim of a process that has died no longer counts.
    static let claimLease: Int64 = 30

    init(_ context: EngineContext) {
        self.context = context
        answerKey = context.masterKey.derivedSecret(for: .journeyAnswer)
    }

    /// A step as it is stored.
    struct Step: Sendable {
        let id: String
        let expiresAt: Int64
        let status: Status
    }

    /// Whether a step waits for its answer.
    enum Status: Sendable {
        /// It waits; its state is sealed.
        case pending(sealedState: [UInt8])
        /// It has been answered, with what the answer was recognised by and the reply.
        case answered(digest: String, at: Int64, sealedReply: [UInt8])
    }

    /// The step, or `nil` when there is none.
    func find(_ id: String) async throws -> Step? {
        let rows = try await context.database.run(.read("SELECT * FROM journey_steps WHERE id = ?1", [.text(id)]))
        guard let row = rows.first else { return nil }
        let status: Status =
            if let answeredAt = try row.optionalInteger("answered_at") {
                .answered(digest: try row.text("answer"), at: answeredAt, sealedReply: try row.blob("sealed_reply"))
            } else {
                .pending(sealedState: try row.blob("sealed_state"))
            }
        return Step(id: id, expiresAt: try row.integer("expires_at"), status: status)
    }

    /// The statement that stores a new step.
    func inserting(_ state: JourneyState, id: String) throws -> SQLStatement {
        let sealed = try context.masterKey.seal(
            Secret(bytes: state.json.serializedBytes()), for: .journeyState, context: "state \(id)")
        return SQLStatement(
            "INSERT INTO journey_steps (id, created_at, expires_at, sealed_state) VALUES (?1, ?2, ?3, ?4)",
            [.text(id), .integer(context.clock.epochSeconds), .integer(state.expiresAt), .blob(sealed)],
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

    /// What an answer is recognised by. Without the key it tells nothing, not even about a short password.
    func digest(of body: [UInt8], id: String) -> String {
        let code = HMAC<SHA256>.authenticationCode(for: Array(id.utf8) + [0] + body, using: answerKey.symmetricKey)
        return Base64URL.encode(Array(code))
    }

    /// Claims a step for one answer: of several that come at once, one gets it. Returns the claim, or `nil`.
    func claim(_ id: String, digest: String) async throws -> String? {
        let claim = context.random.token(byteCount: 16)
        let now = context.clock.epochSeconds
        let rows = try await context.database.run(
            SQLStatement(
                """
                UPDATE journey_steps SET claim = ?2, claimed_at = ?3, answer = ?4
                WHERE id = ?1 AND answered_at IS NULL AND expires_at > ?3 AND (claim IS NULL OR claimed_at <= ?5)
                RETURNING id
                """,
                [.text(id), .text(claim), .integer(now), .text(digest), .integer(now - Self.claimLease)]))
        return rows.isEmpty ? nil : claim
    }

    /// Gives a claim up: the step waits again.
    func release(_ id: String, claim: String) async throws {
        _ = try await context.database.run(
            SQLStatement(
                "UPDATE journey_steps SET claim = NULL WHERE id = ?1 AND claim = ?2 AND answered_at IS NULL",
                [.text(id), .text(claim)]))
    }

    /// The statement that ends a step with its reply; it fails unless the claim still stands.
    func finishing(_ id: String, claim: String, reply: StoredReply) throws -> SQLStatement {
        let sealed = try context.masterKey.seal(reply.secret, for: .journeyState, context: "reply \(id)")
        return SQLStatement(
            """
            UPDATE journey_steps SET answered_at = ?3, sealed_reply = ?4, sealed_state = ?5
            WHERE id = ?1 AND claim = ?2 AND answered_at IS NULL RETURNING id
            """,
            [.text(id), .text(claim), .integer(context.clock.epochSeconds), .blob(sealed), .blob([])],
            expecting: .exactly(1))
    }

    /// Deletes the steps whose time is over, and the replies that nobody gets again: a session's token may be in them. Returns how
    /// many steps there were.
    func purge() async throws -> Int {
        let latest = context.clock.epochSeconds - Self.replyRetention
        return try await context.database.run([
            SQLStatement("DELETE FROM journey_steps WHERE expires_at <= ?1 RETURNING id", [.integer(latest)]),
            SQLStatement(
                "UPDATE journey_steps SET sealed_reply = ?2 WHERE answered_at <= ?1 AND length(sealed_reply) > 0",
                [.integer(latest), .blob([])]),
        ]).first?.count ?? 0
    }
}

/// The steps that this process is working on. Whoever comes with the same step waits for the outcome instead of guessing.
actor StepsInFlight {
    private var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]

    /// How many may wait for one step.
    static let limit = 128

    /// Begins work on a step and returns `true`; or waits until another's work on it has ended and returns `false`.
    func enter(_ id: String) async throws -> Bool {
        guard let others = waiting[id] else {
            waiting[id] = []
            return true
        }
        guard others.count < Self.limit else {
            throw EngineError(status: 503, "The server is busy. Try again later.")
        }
        await withCheckedContinuation { waiting[id, default: []].append($0) }
        return false
    }

    /// Ends work on a step.
    func leave(_ id: String) {
        for continuation in waiting.removeValue(forKey: id) ?? [] { continuation.resume() }
    }
}
