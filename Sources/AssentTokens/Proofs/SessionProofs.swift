package import AssentCore
import Foundation
import HTTPTypes

/// Proves the app's key in journeys, so that their sessions belong to it, and in requests with such a session. The key
/// is the one that tokens are bound to.
package struct SessionProofs: SessionProver {
    let storage: TokenStorage
    let proofs: ProofMaker
    private let patience: TimeInterval
    private let clock: any WallClock

    /// Proofs by the key that the configuration asks for.
    ///
    /// - Parameters:
    ///   - configuration: as the ``TokenManager`` has it that keeps the sessions.
    ///   - store: as that has it.
    ///   - clock: where the time comes from.
    ///   - random: where the names of keys and proofs come from.
    package init(
        _ configuration: TokenConfiguration, store: any SecretStore, clock: any WallClock, random: any RandomSource
    ) {
        patience = configuration.patience
        self.clock = clock
        storage = TokenStorage(store, configuration)
        proofs = ProofMaker(
            keys: ProofKeys(configuration.dpop, storage: storage, random: random), clock: clock, random: random)
    }

    package func send(
        _ call: HTTPCall, for purpose: ProofPurpose, over transport: any HTTPTransport
    ) async throws -> HTTPReply {
        do {
            guard let (key, token) = try await proven(purpose) else { return try await transport.send(call) }
            let target = ProofMaker.Target(
                method: call.request.method, url: call.request.url ?? "", role: .authorizationServer, token: token)
            return try await exchange(call, target, key, over: transport)
        } catch let error as TokenError {
            throw SessionProofError(
                isLost: error.signInReason == .keyLost, detail: error.detail, suggestion: error.suggestion)
        }
    }

    /// Sends a call with a proof, and once more with another proof when the server wants a nonce and gives one.
    private func exchange(
        _ call: HTTPCall, _ target: ProofMaker.Target, _ key: ProofKey, over transport: any HTTPTransport
    ) async throws -> HTTPReply {
        try await proofs.exchange(
            target, key: key, mayRepeat: call.hasReplayableBody, isHarmless: call.mayBeRepeated
        ) { proof in
            var proved = call
            proved.request.headerFields[.dpop] = proof
            return try await transport.send(proved)
        } read: { reply in
            (reply.response.headerFields, ResourceRefusal(reply.response) == .nonce)
        } drain: { reply in
            _ = try? await reply.body.collect(upTo: 64 << 10)
        }
    }

    /// What a call proves: the key of its session, with the session's token; or in a journey without such a session the
    /// key that the new one will belong to. `nil` without a key.
    private func proven(_ purpose: ProofPurpose) async throws -> (key: ProofKey, token: Secret?)? {
        if let session = purpose.session, let key = try await proofs.keys.key(of: session) {
            return (key, session.token)
        }
        guard case .journey = purpose else { return nil }
        return try await proofs.keys.forSignIn(until: clock.now.addingTimeInterval(patience)).map { ($0, nil) }
    }

    /// The stored session, unless its key is gone: then it opens nothing, and a new sign-in begins without it.
    ///
    /// - Throws: ``TokenError``: `keyUnavailable` when nobody can say.
    package func usable(_ session: Session?) async throws -> Session? {
        guard let session else { return nil }
        do {
            _ = try await proofs.keys.key(of: session)
            return session
        } catch let error as TokenError where error.signInReason == .keyLost {
            return nil
        }
    }
}

extension ProofKeys {
    /// The key of a session; `nil` when it belongs to none.
    ///
    /// - Throws: ``TokenError`` as ``key(of:isAnew:)``.
    func key(of session: Session, isAnew: Bool = false) async throws -> ProofKey? {
        guard let binding = try await binding(of: session) else { return nil }
        return try await key(of: binding, isAnew: isAnew)
    }

    /// What names the key of a session. A session whose journey has just ended is not stored yet: it has the key that
    /// is noted, or one that is gone.
    private func binding(of session: Session) async throws -> KeyBinding? {
        if let stored = KeyBinding(session) { return stored }
        guard let thumbprint = session.keyThumbprint else { return nil }
        guard let name = try await notedName() else { throw TokenError.signInNeeded(.keyLost) }
        return KeyBinding(name: name, thumbprint: thumbprint)
    }
}

extension KeyBinding {
    /// The key that a stored session names; `nil` when it names none.
    init?(_ session: Session) {
        guard let name = session.keyName, let thumbprint = session.keyThumbprint else { return nil }
        self.init(name: name, thumbprint: thumbprint)
    }
}
