package import AssentCore
import AssentStore
import Crypto

/// The passwords of the users.
package struct Passwords: Sendable {
    private let users: Users
    private let attempts: AttemptCounter
    private let random: any RandomSource
    private let cost: PasswordHash.Cost
    private let limits: SignInLimits
    private let derivation: any PasswordDerivation
    private let workers: PasswordWorkers
    private let dummy: PasswordHash

    /// The longest password that is looked at, in bytes.
    package static let byteLimit = 1024

    /// The passwords in a context's database.
    package init(
        _ context: EngineContext, policy: PasswordPolicy = PasswordPolicy(), limits: SignInLimits = SignInLimits(),
        derivation: any PasswordDerivation = ScryptDerivation()
    ) {
        users = Users(context)
        attempts = AttemptCounter(context)
        random = context.random
        cost = PasswordHash.Cost(logN: policy.logN)
        self.limits = limits
        self.derivation = derivation
        workers = PasswordWorkers(parallel: policy.parallelChecks, waiting: policy.waitingChecks)
        dummy = PasswordHash(
            cost: cost, salt: context.random.bytes(PasswordHash.saltBytes),
            hash: context.random.bytes(PasswordHash.hashBytes))
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
    /// - Throws: ``EngineError``: 400 for one that is empty or longer than ``byteLimit``, 503 when the server is busy.
    package func hash(_ password: Secret) async throws -> String {
        guard !password.isEmpty, password.count <= Self.byteLimit else {
            throw EngineError(status: 400, "A password has from 1 to \(Self.byteLimit) bytes.")
        }
        let salt = random.bytes(PasswordHash.saltBytes)
        let hash = try await derived(password, salt: salt, cost: cost, byteCount: PasswordHash.hashBytes)
        return PasswordHash(cost: cost, salt: salt, hash: hash).text
    }

    /// Checks a password. For a name that does not exist the same work is done.
    package func check(username: String, password: Secret, realm: String) async throws -> Check {
        guard !password.isEmpty, password.count <= Self.byteLimit else { return .wrong }
        let name = Base64URL.encode(Array(SHA256.hash(data: Array("\(realm)\u{0}\(username)".utf8))))
        let counter = "password:\(name)"
        guard try await attempts.attempt(counter, limit: limits.attempts, window: limits.window) else {
            return .locked
        }
        let user = try await users.find(username: username, realm: realm)
        // Asked for in any case: an unknown user must cost the same.
        let stored = try await users.passwordHash(userID: user?.id ?? "").flatMap(PasswordHash.init)
        let hash = stored ?? dummy
        let derived = try await derived(password, salt: hash.salt, cost: hash.cost, byteCount: hash.hash.count)
        let isRight = ConstantTime.equal(derived, hash.hash)
        guard let user, stored != nil, isRight else { return .wrong }
        try await attempts.reset(counter)
        return .right(user)
    }

    private func derived(
        _ password: Secret, salt: [UInt8], cost: PasswordHash.Cost, byteCount: Int
    ) async throws -> [UInt8] {
        let derivation = derivation
        return try await workers.run {
            try derivation.derive(password, salt: salt, cost: cost, byteCount: byteCount)
        }
    }
}
