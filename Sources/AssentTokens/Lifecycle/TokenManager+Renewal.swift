import AssentCore
import Foundation
import Logging

extension TokenManager {
    /// Renews what is stored, unless somebody else has just done so. What nobody will use is noted, and revoked when
    /// nobody waits for that.
    func renew(rejecting rejected: Secret?) async throws -> TokenSet {
        do {
            return try await exclusively { try await renewExclusively(renewal(rejecting: rejected)) }
        } catch let error as TokenError where error.code == .busy {
            var idle = renewal(rejecting: rejected)
            let contents = try await storage.load()
            let isKeyLost = try await isKeyLost(contents)
            _ = idle.loaded(
                tokens: contents.tokens, session: contents.session, isKeyLost: isKeyLost, now: clock.now)
            guard case .use(let tokens) = idle.unable(error, now: clock.now) else { throw error }
            return tokens
        }
    }

    /// Takes the steps of a renewal. Nobody else, in any process, is at it.
    private func renewExclusively(_ renewal: TokenRenewal) async throws -> TokenSet {
        var renewal = renewal
        var contents = TokenStorage.Contents()
        var step = TokenRenewal.Step.read
        try await saveUnsaved()
        while true {
            switch step {
            case .read:
                contents = try await storage.load()
                let isKeyLost = try await isKeyLost(contents, isAnew: true)
                step = renewal.loaded(
                    tokens: contents.tokens, session: contents.session, isKeyLost: isKeyLost, now: clock.now)
            case .use(let tokens): return tokens
            case .fail(let error): throw error
            case .remove(let tokens, let removal):
                guard try await remove(&contents, because: removal) else { step = .read; continue }
                if removal == .orphaned || removal == .keyLost { orphans.add(tokens) }
                step = renewal.removed(removal)
            case .removeSession:
                guard try await removeSession(&contents) else { step = .read; continue }
                step = renewal.removedSession(now: clock.now)
            case .refresh(let tokens, let refreshToken):
                let (answer, isRepeated) = try await refresh(tokens, refreshToken)
                step = renewal.refreshed(answer, isRepeated: isRepeated, now: clock.now)
            case .authorize(let session):
                step = renewal.authorized(try await authorize(session), now: clock.now)
            case .store(let tokens):
                guard try await store(tokens, replacing: contents) else {
                    // Nothing is there: somebody has signed out, and the server has heard of the tokens before alone.
                    if try await storage.loadTokens() == nil { orphans.add(tokens) }
                    step = .read
                    continue
                }
                return tokens
            }
        }
    }

    /// Whether the stored tokens are bound to a key that is gone. Tokens of another session go without this: nobody
    /// uses them, whatever became of their key.
    func isKeyLost(_ contents: TokenStorage.Contents, isAnew: Bool = false) async throws -> Bool {
        guard let tokens = contents.tokens, tokens.belongs(to: contents.session) else { return false }
        return try await proofs.keys.isLost(tokens.key, isAnew: isAnew)
    }

    /// Removes the tokens that were read; `false` when somebody else has changed them since.
    private func remove(
        _ contents: inout TokenStorage.Contents, because removal: TokenRenewal.Removal
    ) async throws -> Bool {
        guard try await storage.save(nil, since: contents.tokensVersion) else { return false }
        contents.tokensVersion = nil
        try await storage.forgetAttempt()
        logger.info("tokens were removed", metadata: ["reason": "\(removal)"])
        return true
    }

    /// Removes the session that was read; `false` when somebody else has changed it since.
    private func removeSession(_ contents: inout TokenStorage.Contents) async throws -> Bool {
        guard try await storage.removeSession(since: contents.sessionVersion) else { return false }
        contents.sessionVersion = nil
        logger.info("the session was removed", metadata: ["reason": "the server does not accept it any more"])
        return true
    }

    /// Stores new tokens in place of those that were read; `false` when somebody else has changed them since. A
    /// sign-out waits for a renewal, but not for ever, and where there were no tokens before, the store refuses nothing
    /// after it: then a session that is gone says so, and its first tokens are removed again.
    private func store(_ tokens: TokenSet, replacing contents: TokenStorage.Contents) async throws -> Bool {
        unsaved = (tokens, contents.tokensVersion)
        let isSaved = try await storage.save(tokens, since: contents.tokensVersion)
        unsaved = nil
        // The attempt with a refresh token that was replaced names that one, and is no other one's.
        if isSaved, tokens.refreshToken == contents.tokens?.refreshToken { try await storage.forgetAttempt() }
        guard isSaved, contents.tokensVersion == nil, contents.session != nil,
            try await storage.loadSession()?.version != contents.sessionVersion
        else { return isSaved }
        if let stored = try await storage.loadTokens(), stored.tokens.accessToken == tokens.accessToken {
            _ = try await storage.save(nil, since: stored.version)
        }
        return false
    }

    /// What the server gave and the store refused earlier. The server has forgotten the tokens before, so these must
    /// not be lost.
    private func saveUnsaved() async throws {
        guard let (tokens, version) = unsaved else { return }
        let session = try await storage.load().session
        // First tokens of a session: when it is gone, somebody has signed out.
        if tokens.belongs(to: session), version != nil || session != nil {
            _ = try await storage.save(tokens, since: version)
        }
        unsaved = nil
    }

    /// Asks for the successor of `tokens`. Another user's ID token is thrown: an older token does not help over that.
    private func refresh(
        _ tokens: TokenSet, _ refreshToken: Secret
    ) async throws -> (TokenRenewal.RefreshAnswer, isRepeated: Bool) {
        var isRepeated = false
        do {
            // Before the attempt is noted: when the server cannot even be described, nothing was attempted.
            let knowsAttempts = try await provider.metadata().knowsRefreshAttempts
            var key: ProofKey?
            if let binding = tokens.key { key = try await proofs.keys.key(of: binding) }
            let attempt = try await storage.attempt(for: refreshToken, random: random)
            isRepeated = attempt.isRepeated
            let new = try await provider.refresh(
                tokens, refreshToken, attemptID: knowsAttempts ? attempt.id : nil, key: key)
            return (.granted(new), isRepeated)
        } catch let error as TokenError where error.code != .invalidIDToken {
            if error.isDefiniteRefusal { return (.refused, isRepeated) }
            // Nothing was attempted.
            if error.isDemandForNonce || error.isAboutClientKey, !isRepeated { try await storage.forgetAttempt() }
            let isRefusalOfClient = error.isRefusalOfClient || error.code == .notRegistered
            guard error.isWithoutReason || isRefusalOfClient else { return (.failed(error), isRepeated) }
            // It was answered, so no later attempt is one that was interrupted; unless the answer may be to a copy.
            if !isRepeated, !error.mayBeAboutCopy(configuration) { try await storage.forgetAttempt() }
            return (error.isWithoutReason ? .refusedWithoutReason : .refusedClient(error), isRepeated)
        }
    }

    /// Asks for tokens with the session. Another user's ID token is thrown: an older token does not help over that.
    private func authorize(_ session: Session) async throws -> TokenRenewal.AuthorizationAnswer {
        do {
            let key = try await proofs.keys.forNewTokens()
            return .granted(try await provider.authorize(session, key: key))
        } catch let error as TokenError where error.code != .invalidIDToken {
            guard error.signInReason == .sessionRefused else { return .failed(error) }
            return error.isWithoutReason ? .refusedWithoutReason : .refused
        }
    }
}

extension TokenError {
    /// Whether a refusal may be about the second copy of a refresh that was carried out: where something between
    /// repeats a request, the copy has a client assertion that was used before. The next refresh must be the same
    /// attempt then, since another would be reuse of the refresh token.
    fileprivate func mayBeAboutCopy(_ configuration: TokenConfiguration) -> Bool {
        let authenticates = configuration.clientAuthentication.isOn || configuration.registration != nil
        return authenticates && oauthError == "invalid_client"
    }
}
