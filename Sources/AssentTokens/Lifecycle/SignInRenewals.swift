/// One renewal for all who want tokens in one sign-in. One that began before somebody signed out, or in, has the
/// tokens, or the failure, of the user before. It may still be under way when a sign-in is over: that waits for its
/// lease, and not for its end.
struct SignInRenewals: Sendable {
    private struct Outcome: Sendable {
        /// Who was signed in when the renewal began.
        let signIn: SignInMark
        let result: Result<TokenSet, any Error>
    }

    private let flight = SingleFlight<Outcome>()
    private let storage: TokenStorage

    /// How often a renewal of another sign-in may be under way before this gives up.
    private static let maximumRounds = 6

    init(_ storage: TokenStorage) { self.storage = storage }

    /// How many wait.
    var count: Int { flight.count }

    /// The tokens of the renewal that is under way, or of `work`; see ``SingleFlight/joinOrStart(_:afterwards:)``.
    func joinOrStart(
        _ work: @escaping @Sendable () async throws -> TokenSet,
        afterwards: @escaping @Sendable () async -> Void
    ) async throws -> TokenSet {
        let storage = storage
        for _ in 0..<Self.maximumRounds {
            let current = storage.signIn
            let outcome = try await flight.joinOrStart {
                let signIn = storage.signIn
                do {
                    return Outcome(signIn: signIn, result: .success(try await work()))
                } catch {
                    return Outcome(signIn: signIn, result: .failure(error))
                }
            } afterwards: {
                await afterwards()
            }
            if outcome.signIn === current { return try outcome.result.get() }
        }
        throw TokenError.keepsChanging
    }
}
