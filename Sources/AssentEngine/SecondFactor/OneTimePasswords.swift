import AssentCore
package import AssentOTP
import AssentStore

/// How many codes may be tried.
package struct OneTimePasswordLimits: Sendable, Hashable {
    /// How many a user may try in a window, over all journeys and transactions; a right one forgets them.
    package var perUser: Int64

    /// The window, in seconds.
    package var window: Int64

    /// How many may be tried in one transaction.
    package var perTransaction: Int64

    /// How many time steps before and after the current one are good.
    package var tolerance: Int

    /// Limits. Ten guesses in an hour at six digits with three good codes: less than one chance in a thousand in a day.
    package init(perUser: Int64 = 10, window: Int64 = 3600, perTransaction: Int64 = 5, tolerance: Int = 1) {
        self.perUser = perUser
        self.window = window
        self.perTransaction = perTransaction
        self.tolerance = tolerance
    }
}

/// The time-based one-time passwords (RFC 6238) of the users. Each code is accepted once, wherever it was used.
package struct OneTimePasswords: Sendable {
    private let context: EngineContext
    private let limits: OneTimePasswordLimits
    private let attempts: AttemptCounter
    private let audit: AuditLog

    /// The credentials in a context's database.
    package init(_ context: EngineContext, limits: OneTimePasswordLimits = OneTimePasswordLimits()) {
        self.context = context
        self.limits = limits
        attempts = AttemptCounter(context)
        audit = AuditLog(context)
    }

    /// What a check has found.
    package enum Check: Sendable, Hashable {
        /// The right code, now spent.
        case accepted
        /// No code that is good now.
        case wrong
        /// A code that was good, but it or a newer one was used before.
        case replayed
        /// Too many attempts; the code was not looked at.
        case locked
        /// The user has no credential.
        case notEnrolled
    }

    /// Stores a user's credential, instead of an earlier one. Its seed is sealed under the master key.
    package func enrol(_ credential: TOTP, userID: String) async throws {
        let statement = try enrolling(credential, userID: userID)
        try await context.translatingStoreErrors { _ = try await context.database.run(statement) }
    }

    /// The name under which a user's attempts are counted.
    static func counter(userID: String) -> String { "otp:\(userID)" }

    /// The statement that ``enrol(_:userID:)`` runs.
    func enrolling(_ credential: TOTP, userID: String) throws -> SQLStatement {
        let sealed = try context.masterKey.seal(credential.hotp.secret, for: .oneTimePasswordSeed, context: userID)
        return SQLStatement(
            """
            INSERT INTO totp_credentials (user_id, sealed_secret, algorithm, digits, period, last_step)
            VALUES (\(userID), \(sealed), \(credential.hotp.algorithm.rawValue), \(credential.hotp.digits),
                \(credential.period), NULL)
            ON CONFLICT (user_id) DO UPDATE SET sealed_secret = excluded.sealed_secret,
                algorithm = excluded.algorithm, digits = excluded.digits, period = excluded.period,
                last_step = NULL
            """, expecting: .exactly(1))
    }

    /// Whether the user has a credential.
    package func isEnrolled(userID: String) async throws -> Bool {
        try await context.translatingStoreErrors {
            try await !context.database.run(
                .read("SELECT user_id FROM totp_credentials WHERE user_id = \(userID)")
            ).isEmpty
        }
    }

    /// Checks a code and, when it is right, spends it and all older ones. What is refused is audited. Attempts are
    /// counted for the user and, where the code is to approve one, for the transaction. The record names the client's
    /// `address`, when it is known.
    package func verify(
        _ code: String, user: User, transactionID: String? = nil, from address: String? = nil
    ) async throws -> Check {
        try await context.translatingStoreErrors {
            let result = try await check(code, user: user, transactionID: transactionID)
            if result != .accepted {
                var detail: JSONObject = ["username": .string(user.username)]
                detail["address"] = address.map(JSONValue.string)
                try await audit.write(
                    AuditRecord(
                        .otpVerify, .refused, reason: "\(result)", realm: user.realm, userID: user.id,
                        transactionID: transactionID, detail: detail))
            }
            return result
        }
    }

    /// Counts a code that is nobody's, by the name that was given, as those of a user with a key are counted by the
    /// user; returns whether there were too many. A name that is not `isKnown` is audited without itself: people type
    /// passwords where names belong.
    ///
    /// Codes of devices have the same limits (``SigningCodes``) and counts of their own: `kind` keeps these apart.
    func refuse(
        username: String, realm: String, counting kind: String, isKnown: Bool, from address: String?
    ) async throws -> Bool {
        try await context.translatingStoreErrors {
            if !isKnown {
                var detail = JSONObject()
                detail["address"] = address.map(JSONValue.string)
                try await audit.write(
                    AuditRecord(.otpVerify, .refused, reason: "unknownUser", realm: realm, detail: detail))
            }
            let counter = "otp:\(kind):\(PasswordCaller.hash(username: username, realm: realm))"
            return try await !attempts.attempt(counter, limit: limits.perUser, window: limits.window)
        }
    }

    private func check(_ code: String, user: User, transactionID: String?) async throws -> Check {
        let row = try await context.database.run(
            .read("SELECT * FROM totp_credentials WHERE user_id = \(user.id)")
        ).first
        guard let row else { return .notEnrolled }
        let userCounter = Self.counter(userID: user.id)
        guard try await attempts.attempt(userCounter, limit: limits.perUser, window: limits.window) else {
            return .locked
        }
        if let transactionID {
            let counter = "otp-transaction:\(transactionID)"
            // One 24-hour window: a transaction lives far shorter, so at most one window boundary can fall into it.
            guard try await attempts.attempt(counter, limit: limits.perTransaction, window: 86_400) else {
                return .locked
            }
        }
        let totp = try credential(row, userID: user.id)
        guard let step = totp.matchingStep(code, at: context.clock.now, window: limits.tolerance) else {
            return .wrong
        }
        let spent = try await context.database.run(
            SQLStatement(
                """
                UPDATE totp_credentials SET last_step = \(step)
                WHERE user_id = \(user.id) AND (last_step IS NULL OR last_step < \(step)) RETURNING user_id
                """))
        guard !spent.isEmpty else { return .replayed }
        try await attempts.reset(userCounter)
        return .accepted
    }

    private func credential(_ row: SQLRow, userID: String) throws -> TOTP {
        let seed = try context.masterKey.open(
            row.blob("sealed_secret"), for: .oneTimePasswordSeed, context: userID)
        guard let algorithm = OTPAlgorithm(rawValue: try row.text("algorithm")) else {
            throw StoreError(.corrupt, "unknown algorithm of a one-time password credential")
        }
        return try TOTP(
            secret: seed, algorithm: algorithm, digits: Int(try row.integer("digits")),
            period: Int(try row.integer("period")))
    }
}
