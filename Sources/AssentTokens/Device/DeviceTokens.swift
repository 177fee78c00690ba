public import AssentCore
import Foundation

/// The installation's own access token, which speaks for no user (RFC 6749 §4.4): asked for with the installation's
/// key (`private_key_jwt`), bound to it (RFC 9449), and kept in memory alone.
///
/// However many tasks want a token at once, one request is sent. The token is renewed before it expires, and once when
/// a resource has refused it. It ends with the registration.
public final class DeviceTokens: AccessTokenSource {
    private let provider: ProviderClient
    private let clock: any WallClock
    private let life: Locked<DeviceTokenLife>
    private let flight = SingleFlight<Flown>()

    /// How often a request for other scopes may be under way before this gives up.
    private static let maximumRounds = 6

    /// The outcome of a request, with what it asked for. Another task's failure does not decide this one.
    private struct Flown: Sendable {
        let ask: DeviceTokenLife.Ask
        let rejected: Secret?
        let result: Result<DeviceTokenLife.Grant, any Error>
    }

    /// Calls of the installation.
    public var kind: CallKind { .device }

    init(_ configuration: TokenConfiguration, provider: ProviderClient, clock: any WallClock) {
        self.provider = provider
        self.clock = clock
        let life = Locked(DeviceTokenLife(margin: configuration.renewBefore, leeway: configuration.leeway))
        self.life = life
        provider.registration?.whenEnded { life.withLock { $0.end() } }
    }

    /// Gets a token for these scopes, unless there is one already. An installation that is to register does so first.
    ///
    /// - Parameter scopes: what access is asked for: scopes that need no user.
    /// - Throws: ``TokenError``: `scopeRefused` when the server does not grant all of them; `notRegistered` when the
    ///   server has ended the registration, and then it is forgotten; `invalidConfiguration` when this client has no
    ///   key; as ``AppRegistration/register()``; `tokenRefused`, `transport`; `CancellationError`.
    public func authenticate(scopes: [String]) async throws {
        let scopes = Set(scopes)
        _ = try await grant(rejecting: nil) { life, now in life.authenticate(scopes, now: now) }
    }

    /// The token of ``authenticate(scopes:)``, renewed when it is about to expire or was refused.
    ///
    /// - Throws: ``TokenError``: `deviceNotAuthenticated` when nothing was asked for, or the registration has ended; as
    ///   ``authenticate(scopes:)``.
    public func token(rejecting rejected: Secret?) async throws -> AccessToken? {
        try await grant(rejecting: rejected) { life, now in life.wanted(rejecting: rejected, now: now) }.token
    }

    /// Asks the life what to do until it gives a token; requests of other tasks are waited for.
    private func grant(
        rejecting rejected: Secret?, _ next: @Sendable (DeviceTokenLife, Date) -> DeviceTokenLife.Step
    ) async throws -> DeviceTokenLife.Grant {
        for _ in 0..<Self.maximumRounds {
            let now = clock.now
            switch life.withLock({ next($0, now) }) {
            case .use(let grant): return grant
            case .fail(let error): throw error
            case .ask(let ask):
                let flown = try await flight.joinOrStart { await self.fly(ask, rejecting: rejected) }
                // Another task's request, perhaps for other scopes or without knowledge of the refusal.
                switch flown.result {
                case .success(let grant) where grant.scopes == ask.scopes && grant.token.value != rejected:
                    return grant
                case .failure(let error) where flown.ask == ask && flown.rejected == rejected: throw error
                default: continue
                }
            }
        }
        throw TokenError(.busy, "Other tasks kept asking for tokens with other scopes.")
    }

    private func fly(_ ask: DeviceTokenLife.Ask, rejecting rejected: Secret?) async -> Flown {
        do {
            let grant = try await request(ask, rejecting: rejected)
            return Flown(ask: ask, rejected: rejected, result: .success(grant))
        } catch {
            return Flown(ask: ask, rejected: rejected, result: .failure(error))
        }
    }

    private func request(
        _ ask: DeviceTokenLife.Ask, rejecting rejected: Secret?
    ) async throws -> DeviceTokenLife.Grant {
        let answer: DeviceTokenLife.Answer
        do {
            let (grant, scopes) = try await provider.clientCredentials(ask)
            answer = .granted(grant, scopes: scopes)
        } catch let error as TokenError {
            answer = error.code == .notRegistered ? .ended(error) : .failed(error)
        }
        let now = clock.now
        let step = life.withLock { $0.answered(ask, answer, rejecting: rejected, now: now) }
        if case .use(let grant) = step { return grant }
        if case .granted(let unused, _) = answer {
            await provider.discard(refreshToken: nil, accessToken: unused.token.value)
        }
        guard case .fail(let error) = step else { throw DeviceTokenLife.notAuthenticated }
        throw error
    }
}
