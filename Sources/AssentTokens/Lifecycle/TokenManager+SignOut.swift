import AssentCore
import Foundation
import Logging

extension TokenManager {
    /// Forgets session and tokens, whatever the server says, then tells the server: revokes the refresh token and the
    /// access token, ends AM's session, or, where there is none, the provider's by the ID token. The key that the
    /// tokens were bound to is removed as soon as they are forgotten; the key of a session, as soon as the server has
    /// heard that the session ends.
    ///
    /// What the server is to be told is noted, sealed, before anything is forgotten: a sign-out that is interrupted, or
    /// that the network prevents, is finished by ``retrySignOuts()``.
    /// - Returns: what could not be done.
    public func signOut() async -> SignOutResult { await forget(session: true) }

    /// Signs out as ``signOut()``, and leaves the provider's own session to the browser in which it lives.
    ///
    /// A provider ends the session of a browser only there: at its page it may ask the user, and it needs the browser's
    /// cookies (OpenID Connect RP-Initiated Logout 1.0 §2). `open` is called once, with the URL of that page, when the
    /// user had signed in in a browser and the provider has such a page. The URL has the ID token in it: show it to
    /// nobody but the user's browser.
    ///
    /// - Parameters:
    ///   - redirectURI: where the page leads when it is done; it must be registered at the provider.
    ///   - open: opens the URL in the browser. It must not wait.
    /// - Returns: what could not be done. What the page did is not known.
    public func signOut(
        returningTo redirectURI: String? = nil, browser open: @escaping @Sendable (String) -> Void
    ) async -> SignOutResult {
        await forget(session: true, browser: (redirectURI, open))
    }

    /// Revokes the tokens and forgets them, whatever the server says. The session stays: the next
    /// ``tokens(rejecting:)`` gets new ones with it.
    ///
    /// - Returns: what could not be done.
    public func revoke() async -> SignOutResult { await forget(session: false) }

    /// Tells the server what earlier sign-outs could not.
    ///
    /// - Returns: what could still not be done.
    /// - Throws: ``TokenError`` with code `storageFailed`.
    public func retrySignOuts() async throws -> [SignOutResult.Undone] {
        let entries = try await storeErrorsAsTokenErrors { try await pending.load(now: clock.now) }
        return await tell(entries).undone
    }

    /// How many things the server must still be told.
    ///
    /// - Throws: ``TokenError`` with code `storageFailed`.
    public func pendingSignOuts() async throws -> [SignOutResult.Step] {
        try await storeErrorsAsTokenErrors { try await pending.load(now: clock.now).map(\.step) }
    }

    /// Forgets session and tokens, or the tokens alone, and tells the server. With `signIn`, nothing is done to those
    /// of another sign-in.
    func forget(
        session endsSession: Bool, of signIn: SignInMark? = nil,
        browser: (redirectURI: String?, open: @Sendable (String) -> Void)? = nil
    ) async -> SignOutResult {
        // A caller that is cancelled may keep the server from being told, but nothing from being forgotten.
        let local = await Task { await forgetLocally(session: endsSession, of: signIn) }.value
        var shown: Set<String> = []
        if let browser, let entry = local.entries.first(where: { $0.step == .endProviderSession }),
            let url = try? await provider.endSessionURL(idToken: entry.secret, redirectURI: browser.redirectURI)
        {
            browser.open(url)
            shown.insert(entry.id)
        }
        let (untold, failure) = await tell(local.entries, areNoted: local.areNoted, except: shown)
        let undone = local.unreadable + untold
        logger.debug("signed out", metadata: ["undone": "\(undone.count)"])
        return SignOutResult(
            session: local.session, undone: undone, localFailure: local.failure ?? failure)
    }

    /// What a sign-out has done here, and what is left to tell.
    private struct Forgotten {
        var entries: [PendingSignOuts.Entry] = []
        var areNoted = true
        /// What the server cannot be told, because nobody can read it here.
        var unreadable: [SignOutResult.Undone] = []
        var session: Session?
        var failure: TokenError?

        /// How long a sign-out waits for a renewal that is under way, in seconds.
        static let patience: TimeInterval = 20

        /// A caller that has held the lease for too long may have stored the session's first tokens after they were
        /// looked for, and have seen the session still there. What comes now finds it gone.
        mutating func forgetLateTokens(
            _ storage: TokenStorage, _ pending: PendingSignOuts, random: any RandomSource, now: Date
        ) async {
            guard let late = try? await storage.loadTokens()?.tokens else { return }
            let new = PendingSignOuts.Entry.all(tokens: late, session: session, random: random, now: now)
                .filter { $0.step == .revokeTokens }
            entries += new
            do { try await pending.change(adding: new, now: now) } catch { areNoted = false }
            do { try await storage.removeTokens() } catch { failure = error as? TokenError ?? failure }
        }
    }

    private func forgetLocally(session endsSession: Bool, of signIn: SignInMark?) async -> Forgotten {
        let deadline = clock.now.addingTimeInterval(Forgotten.patience)
        let lease = try? await storage.store.lease(storage.leaseName, deadline: deadline)
        var forgotten = Forgotten()
        // With the lease: a sign-in takes the place of another one under it.
        if let signIn, storage.signIn !== signIn {
            let isEmpty = (try? await storage.load()).map { $0.session == nil && $0.tokens == nil } ?? false
            forgotten.failure = isEmpty ? nil : TokenError.userReplaced
        } else {
            forgotten = await forgetStored(session: endsSession, isAlone: lease != nil)
        }
        await lease?.release()
        return forgotten
    }

    /// Forgets what is stored. `isAlone` says whether this has the lease.
    private func forgetStored(session endsSession: Bool, isAlone: Bool) async -> Forgotten {
        var forgotten = Forgotten()
        var session: Session?
        var tokens = unsaved?.tokens
        do { session = try await storage.loadSession()?.session } catch {
            if endsSession, sessions != nil { forgotten.unreadable.append(Self.unreadable(.endSession, error)) }
        }
        do { if tokens == nil { tokens = try await storage.loadTokens()?.tokens } } catch {
            forgotten.unreadable.append(Self.unreadable(.revokeTokens, error))
        }
        unsaved = nil
        forgotten.entries = PendingSignOuts.Entry.all(
            tokens: tokens, session: session, random: random, now: clock.now
        ).filter { entry in
            switch entry.step {
            case .revokeTokens: true
            case .endProviderSession: endsSession
            case .endSession: endsSession && sessions != nil
            }
        }
        // Before anything is forgotten. What cannot be noted is told all the same.
        do { try await pending.change(adding: forgotten.entries, now: clock.now) } catch { forgotten.areNoted = false }
        forgotten.failure = await errorThrown { try await self.storage.removeTokens() }
        if forgotten.failure == nil {
            // Only now: nothing may be left that cannot be used. Revoking needs no proof (RFC 7009 §2.1).
            let (tokenKey, sessionKey) = (tokens?.key, session.flatMap(KeyBinding.init))
            // The session's key also proves that the session may be ended.
            let isNeeded = !endsSession || forgotten.entries.contains { $0.key != nil }
            forgotten.failure = await errorThrown {
                try await self.proofs.keys.remove(
                    [tokenKey, sessionKey], except: isNeeded ? sessionKey : nil, isSignOut: endsSession)
            }
        }
        if endsSession {
            forgotten.session = session
            forgotten.failure = await errorThrown { try await self.storage.save(nil) } ?? forgotten.failure
            if !isAlone { await forgotten.forgetLateTokens(storage, pending, random: random, now: clock.now) }
        }
        forgetCache()
        // Calls that wait are those of who has gone, and not of who may come.
        if endsSession { storage.markSignIn() }
        return forgotten
    }

    private static func unreadable(_ step: SignOutResult.Step, _ error: any Error) -> SignOutResult.Undone {
        .init(step, "The tokens stored here cannot be read: \(reason(error))")
    }

    /// Tells the server, `except` of what it hears by a browser, and forgets what it was told and will never hear.
    private func tell(
        _ entries: [PendingSignOuts.Entry], areNoted: Bool = true, except shown: Set<String> = []
    ) async -> (undone: [SignOutResult.Undone], localFailure: TokenError?) {
        var undone: [SignOutResult.Undone] = []
        var over = shown
        for entry in entries where !shown.contains(entry.id) {
            do {
                try await tell(entry)
                over.insert(entry.id)
            } catch {
                // Where the task was cancelled, or a layer of the app's own has failed, the server has refused nothing.
                let isKept = areNoted && (error as? TokenError)?.mayBeToldLater ?? true
                if !isKept { over.insert(entry.id) }
                undone.append(.init(entry.step, Self.reason(error), isKept: isKept))
            }
        }
        let gone = entries.filter { over.contains($0.id) }
        do {
            let failure = try await storeErrorsAsTokenErrors {
                try await pending.change(removing: gone, now: clock.now)
            }
            return (undone, failure)
        } catch {
            return (undone, error as? TokenError)
        }
    }

    private func tell(_ entry: PendingSignOuts.Entry) async throws {
        switch entry.step {
        case .revokeTokens:
            if entry.isRefreshToken {
                try await provider.revoke(refreshToken: entry.secret, accessToken: entry.accessToken)
            } else {
                try await provider.revoke(refreshToken: nil, accessToken: entry.secret)
            }
        case .endProviderSession: try await provider.endSession(idToken: entry.secret)
        case .endSession: try await sessions?.end(entry.session)
        }
    }

    private static func reason(_ error: any Error) -> String {
        if error is CancellationError { return "The task was cancelled." }
        return error.explanationOrType
    }
}

/// What `body` throws; `nil` when it throws nothing.
private func errorThrown(by body: () async throws -> Void) async -> TokenError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? TokenError ?? TokenError(.storageFailed, "The store failed with \(type(of: error)).")
    }
}
