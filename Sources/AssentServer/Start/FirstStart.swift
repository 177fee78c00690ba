import AssentConfiguration
import AssentCore
import AssentEngine
import Foundation

/// What a start stores that somebody must see: users with generated credentials, and the token for the first
/// administrator. It is done once the server listens, so that a start that fails has not made credentials that nobody
/// saw.
actor FirstStart {
    private let context: EngineContext
    private let seeding: UserSeeding
    private let plan: UserSeeding.Plan
    private let realms: [RealmConfiguration]
    private let bootstrapPath: String
    private var work: Task<Result, any Error>?

    struct Result: Sendable {
        /// The accounts that were made with random credentials.
        let accounts: [GeneratedAccount]

        /// The file with the token that makes the first administrator, if there is none yet.
        let bootstrapFile: String?
    }

    init(
        context: EngineContext, seeding: UserSeeding, plan: UserSeeding.Plan, realms: [RealmConfiguration],
        bootstrapPath: String
    ) {
        self.context = context
        self.seeding = seeding
        self.plan = plan
        self.realms = realms
        self.bootstrapPath = bootstrapPath
    }

    /// What was stored. The first caller starts the work; the others wait for its result.
    func result() async throws -> Result {
        let work = work ?? Task { try await store() }
        self.work = work
        return try await work.value
    }

    private func store() async throws -> Result {
        let accounts = try await accounts()
        try? FileManager.default.removeItem(atPath: bootstrapPath)
        let token = try await Administration(context).bootstrapToken()
        if let token { try PrivateFile.create(bootstrapPath, Array((token.reveal() + "\n").utf8)) }
        return Result(accounts: accounts, bootstrapFile: token == nil ? nil : bootstrapPath)
    }

    /// Of several servers that start at once, one makes the users; the others then find them.
    private func accounts() async throws -> [GeneratedAccount] {
        if let accounts = try await seeding.carryOut(plan) { return accounts }
        for _ in 0..<Self.attempts {
            if let accounts = try await seeding.carryOut(seeding.plan(realms)) { return accounts }
        }
        throw ConfigurationError(
            file: "users", line: nil, "other processes make users all the time: start again when they have ended")
    }

    private static let attempts = 10
}
