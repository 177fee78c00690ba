import AssentCore
import Foundation

/// A token that is in memory alone, as ``MemoryTokenLife`` says: however many tasks want it at once, one request is
/// sent.
final class MemoryTokens: Sendable {
    /// Gets a token from the server, with the scopes that it granted.
    typealias Request =
        @Sendable (MemoryTokenLife.Ask) async throws -> (grant: MemoryTokenLife.Grant, scopes: Set<String>)

    private let request: Request
    private let discard: @Sendable (Secret) async -> Void
    private let clock: any WallClock
    private let life: Locked<MemoryTokenLife>
    private let flight = SingleFlight<Flown>()

    /// How often a request for other scopes may be under way before this gives up.
    private static let maximumRounds = 6

    /// The outcome of a request, with what it asked for. Another task's failure does not decide this one.
    private struct Flown: Sendable {
        let ask: MemoryTokenLife.Ask
        let rejected: Secret?
        let result: Result<MemoryTokenLife.Grant, any Error>
    }

    init(
        _ configuration: TokenConfiguration, provider: ProviderClient, missing: TokenError, clock: any WallClock,
        request: @escaping Request
    ) {
        self.clock = clock
        self.request = request
        let life = Locked(
            MemoryTokenLife(margin: configuration.renewBefore, leeway: configuration.leeway, missing: missing))
        self.life = life
        discard = { await provider.discard(refreshToken: nil, accessToken: $0) }
        provider.registration?.whenEnded { life.withLock { $0.end() } }
    }

    /// Forgets the token. What is under way is nobody's.
    func end() { life.withLock { $0.end() } }

    /// Gets a token for these scopes, unless there is one already.
    func authenticate(scopes: Set<String>, user: String? = nil) async throws {
        _ = try await grant(rejecting: nil) { life, now in life.authenticate(scopes, user: user, now: now) }
    }

    /// The token, renewed when it is about to expire or was refused.
    ///
    /// - Throws: ``TokenError`` with code `sessionChanged` when another user is remembered meanwhile: the call that
    ///   waits is not that one's.
    func token(rejecting rejected: Secret?) async throws -> AccessToken {
        let user = life.withLock { $0.user }
        let grant = try await grant(rejecting: rejected) { life, now in life.wanted(rejecting: rejected, now: now) }
        guard user == nil || grant.user == user else { throw TokenError.userChanged }
        return grant.token
    }

    /// Asks the life what to do until it gives a token; requests of other tasks are waited for.
    func grant(
        rejecting rejected: Secret?, _ next: @escaping @Sendable (MemoryTokenLife, Date) -> MemoryTokenLife.Step
    ) async throws -> MemoryTokenLife.Grant {
        for _ in 0..<Self.maximumRounds {
            let now = clock.now
            switch life.withLock({ next($0, now) }) {
            case .use(let grant): return grant
            case .fail(let error): throw error
            case .ask(let ask):
                let flown = try await flight.joinOrStart { await self.fly(ask, rejecting: rejected, next) }
                // Another task's request, perhaps for other scopes or without knowledge of the refusal.
                switch flown.result {
                case .success(let grant)
                where grant.scopes == ask.scopes && grant.user == ask.user && grant.token.value != rejected:
                    return grant
                case .failure(let error) where flown.ask == ask && flown.rejected == rejected: throw error
                default: continue
                }
            }
        }
        throw TokenError(.busy, "Other tasks kept asking for tokens with other scopes.")
    }

    /// Asks the life once more: a flight may have ended between its first answer and the start of this one.
    private func fly(
        _ ask: MemoryTokenLife.Ask, rejecting rejected: Secret?,
        _ next: @Sendable (MemoryTokenLife, Date) -> MemoryTokenLife.Step
    ) async -> Flown {
        let now = clock.now
        switch life.withLock({ next($0, now) }) {
        case .use(let grant): return Flown(ask: ask, rejected: rejected, result: .success(grant))
        case .fail(let error): return Flown(ask: ask, rejected: rejected, result: .failure(error))
        case .ask(let ask):
            do {
                let grant = try await self.ask(ask, rejecting: rejected)
                return Flown(ask: ask, rejected: rejected, result: .success(grant))
            } catch {
                return Flown(ask: ask, rejected: rejected, result: .failure(error))
            }
        }
    }

    private func ask(
        _ ask: MemoryTokenLife.Ask, rejecting rejected: Secret?
    ) async throws -> MemoryTokenLife.Grant {
        let answer: MemoryTokenLife.Answer
        do {
            let (grant, scopes) = try await request(ask)
            answer = .granted(grant, scopes: scopes)
        } catch let error as TokenError {
            answer = error.code == .notRegistered ? .ended(error) : .failed(error)
        }
        let now = clock.now
        let step = life.withLock { $0.answered(ask, answer, rejecting: rejected, now: now) }
        if case .use(let grant) = step { return grant }
        if case .granted(let unused, _) = answer {
            await discard(unused.token.value)
        }
        guard case .fail(let error) = step else { throw MemoryTokenLife.notAuthenticated }
        throw error
    }
}
