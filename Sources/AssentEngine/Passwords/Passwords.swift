package import AssentCore
import AssentStore

/// The passwords of the users.
package struct Passwords: Sendable {
    private let users: Users
    private let attempts: AttemptCounter
    private let audit: AuditLog
    private let random: any RandomSource
    private let limits: SignInLimits
    private let derivation: any PasswordDerivation
    let workers: PasswordWorkers
    private let dummySalt: [UInt8]
    private let inProgress = ChecksInProgress()
    private let knownCosts = Locked<Set<PasswordHash.Cost>?>(nil)

    /// What a hash that is made now costs.
    package let cost: PasswordHash.Cost

    /// The longest password that is looked at, in bytes.
    package static let byteLimit = 1024

    /// The passwords in a context's database.
    package init(
        _ context: EngineContext, policy: PasswordPolicy = PasswordPolicy(), limits: SignInLimits = SignInLimits(),
        derivation: any PasswordDerivation = ScryptDerivation()
    ) {
        users = Users(context)
        attempts = AttemptCounter(context)
        audit = AuditLog(context)
        random = context.random
        cost = PasswordHash.Cost(logN: policy.logN)
        self.limits = limits
        self.derivation = derivation
        workers = PasswordWorkers(threads: policy.parallelChecks, admission: policy.admission)
        dummySalt = context.random.bytes(PasswordHash.saltBytes)
    }

    /// What a check has found.
    package enum Check: Sendable, Hashable {
        /// This user, with the right password. Whether they may sign in is another question.
        case right(User)
        /// No such user, no password, or another.
        case wrong
        /// Too many attempts for this name; the password was not looked at.
        case locked
    }

    /// What to store for a password.
    ///
    /// - Throws: ``EngineError``: `invalidRequest` for one that is empty or longer than ``byteLimit``, `busy`.
    package func hash(_ password: Secret) async throws -> String {
        guard !password.isEmpty, password.count <= Self.byteLimit else {
            throw EngineError.invalidRequest("A password has from 1 to \(Self.byteLimit) bytes.")
        }
        let (cost, random, derivation) = (cost, random, derivation)
        return try await workers.admitting(.server) {
            try await workers.run(for: .server) {
                try PasswordHash.make(password, cost: cost, random: random, derivation: derivation).text
            }
        }
    }

    /// How busy the checks are.
    package var load: PasswordLoad { workers.load }

    /// Refuses what waits for its turn, and whatever comes later, as `busy`. What a thread works on is finished.
    package func drain() { workers.drain() }

    /// Checks a password. For a name that does not exist the same work is done: while hashes of several costs are
    /// stored, every check computes each of these costs once, for every name. A right password that was hashed at
    /// another cost than the configured one is hashed again, so that in time one cost is left; what is no longer
    /// stored is forgotten at the next start.
    ///
    /// Checks of one address, and of one user, wait for each other before they make others wait.
    ///
    /// - Parameters:
    ///   - username: who is said to sign in.
    ///   - password: what they gave.
    ///   - realm: the realm of the user.
    ///   - address: the client's address, when it is known.
    /// - Returns: what was found.
    /// - Throws: ``EngineError`` `busy` when too many checks are in progress, in all or for this address or name there:
    ///   the password was not looked at, and no attempt was counted. The same while the server stops; an attempt may
    ///   have been counted then.
    package func check(
        username: String, password: Secret, realm: String, from address: String? = nil
    ) async throws -> Check {
        guard !password.isEmpty, password.count <= Self.byteLimit else { return .wrong }
        let caller = PasswordCaller(address: address, user: PasswordCaller.hash(username: username, realm: realm))
        return try await workers.admitting(caller) {
            try await check(username: username, password: password, realm: realm, for: caller)
        }
    }

    private func check(
        username: String, password: Secret, realm: String, for caller: PasswordCaller
    ) async throws -> Check {
        let found = try await inProgress.attempt(for: caller.user) {
            // What is refused here is not counted for all: else one address could lock the name for everybody.
            guard
                try await attempts.attempt(caller.counterHere, limit: limits.attempts, window: limits.window)
            else { return false }
            return try await attempts.attempt(
                caller.counter, limit: limits.attemptsOfAll, window: limits.window)
        } check: {
            try await compare(username: username, password: password, realm: realm, for: caller)
        }
        return found ?? .locked
    }

    private func compare(
        username: String, password: Secret, realm: String, for caller: PasswordCaller
    ) async throws -> Check {
        let user = try await users.find(username: username, realm: realm)
        // Asked for in any case: an unknown user must cost the same.
        let text = try await users.passwordHash(userID: user?.id ?? "")
        let stored = text.flatMap(PasswordHash.init)
        let comparison = PasswordComparison(
            stored: stored, costs: try await costs(including: stored?.cost), dummySalt: dummySalt,
            fresh: PasswordHash(cost: cost, salt: random.bytes(PasswordHash.saltBytes), hash: []))
        let derivation = derivation
        let (isRight, renewed) = try await workers.run(for: caller) {
            try comparison.run(password, derivation: derivation)
        }
        guard let user, let text, let stored, isRight else {
            try await note(user, realm: realm, from: caller.address)
            return .wrong
        }
        if stored.cost != renewed.cost {
            try await users.replacePasswordHash(text, with: renewed.text, userID: user.id)
        }
        for counter in [caller.counterHere, caller.counter] { try await attempts.reset(counter) }
        return .right(user)
    }

    /// Notes a wrong password, so that one guess for each of many accounts is seen. The name of somebody who does not
    /// exist is left out: people type passwords where names belong.
    private func note(_ user: User?, realm: String, from address: String?) async throws {
        var detail = JSONObject()
        detail["username"] = (user?.username).map(JSONValue.string)
        detail["address"] = address.map(JSONValue.string)
        try await audit.write(
            AuditRecord(
                .passwordVerify, .refused, reason: user == nil ? "unknownUser" : "wrong", realm: realm,
                userID: user?.id, detail: detail))
    }

    /// The costs that every check computes.
    private func costs(including stored: PasswordHash.Cost?) async throws -> [PasswordHash.Cost] {
        if knownCosts.withLock({ $0 }) == nil {
            let found = try await users.passwordCosts()
            knownCosts.withLock { $0 = ($0 ?? [cost]).union(found) }
        }
        return knownCosts.withLock { known in
            if let stored { known?.insert(stored) }
            return (known ?? [cost]).sorted { ($0.logN, $0.r, $0.p) < ($1.logN, $1.r, $1.p) }
        }
    }
}

/// What one check derives, all of it in one turn.
private struct PasswordComparison: Sendable {
    /// The hash that the password is compared with; without one, the work is the same.
    let stored: PasswordHash?

    /// All costs that are computed, each once.
    let costs: [PasswordHash.Cost]

    /// What stands for the salt where nothing is compared.
    let dummySalt: [UInt8]

    /// The configured cost and a new salt, for a hash that replaces one of another cost.
    let fresh: PasswordHash

    /// Whether the password is right, and what to store for it from now on.
    func run(
        _ password: Secret, derivation: any PasswordDerivation
    ) throws -> (isRight: Bool, renewed: PasswordHash) {
        var isRight = false
        var renewed = fresh
        for cost in costs {
            if let stored, cost == stored.cost {
                let derived = try derivation.derive(
                    password, salt: stored.salt, cost: cost, byteCount: stored.hash.count)
                isRight = ConstantTime.equal(derived, stored.hash)
            } else {
                let salt = cost == fresh.cost ? fresh.salt : dummySalt
                let derived = try derivation.derive(
                    password, salt: salt, cost: cost, byteCount: PasswordHash.hashBytes)
                if cost == fresh.cost { renewed = PasswordHash(cost: cost, salt: salt, hash: derived) }
            }
        }
        return (isRight, renewed)
    }
}
