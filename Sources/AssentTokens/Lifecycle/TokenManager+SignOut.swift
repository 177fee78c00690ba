import AssentCore
import Foundation
import Logging

extension TokenManager {
    /// How long a sign-out waits for a renewal that is under way, in seconds.
    private static let signOutPatience: TimeInterval = 20

    /// Forgets session and tokens, whatever the server says, then tells the server: revokes the tokens, ends AM's
    /// session, or, where there is none, the provider's by the ID token.
    ///
    /// What the server is to be told is noted, sealed, before anything is forgotten: a sign-out that is interrupted, or
    /// that the network prevents, is finished by ``retrySignOuts()``.
    /// - Returns: what could not be done.
    public func signOut() async -> SignOutResult { await forget(session: true) }

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
        let entries = try await storing { try await pending.load(now: clock.now).entries }
        return await tell(entries).undone
    }

    /// How many things the server must still be told.
    ///
    /// - Throws: ``TokenError`` with code `storageFailed`.
    public func pendingSignOuts() async throws -> [SignOutResult.Step] {
        try await storing { try await pending.load(now: clock.now).entries.map(\.step) }
    }

    private func forget(session endsSession: Bool) async -> SignOutResult {
        // A caller that is cancelled may keep the server from being told, but nothing from being forgotten.
        let local = await Task { await forgetLocally(session: endsSession) }.value
        let (undone, failure) = await tell(local.entries)
        logger.debug("signed out", metadata: ["undone": "\(undone.count)"])
        return SignOutResult(
            session: local.session, undone: undone, localFailure: local.failure ?? failure)
    }

    private func forgetLocally(
        session endsSession: Bool
    ) async -> (entries: [PendingSignOuts.Entry], session: Session?, failure: TokenError?) {
        let deadline = clock.now.addingTimeInterval(Self.signOutPatience)
        let lease = try? await storage.store.lease(storage.leaseName, deadline: deadline)
        let contents = (try? await storage.load()) ?? TokenStorage.Contents()
        var entries = PendingSignOuts.Entry.all(
            tokens: unsavedTokens ?? contents.tokens, session: contents.session, random: random, now: clock.now)
        forgetUnsaved()
        if !endsSession { entries.removeAll { $0.step != .revokeTokens } }
        if sessions == nil { entries.removeAll { $0.step == .endSession } }
        // Before anything is forgotten. What cannot be noted is told all the same.
        try? await pending.change(adding: entries, now: clock.now)
        var localFailure = await failure { try await self.storage.removeTokens() }
        if endsSession { localFailure = await failure { try await self.storage.save(nil) } ?? localFailure }
        forgetCache()
        await lease?.release()
        return (entries, endsSession ? contents.session : nil, localFailure)
    }

    /// Tells the server, and forgets what it was told and what it will never hear.
    private func tell(
        _ entries: [PendingSignOuts.Entry]
    ) async -> (undone: [SignOutResult.Undone], localFailure: TokenError?) {
        var undone: [SignOutResult.Undone] = []
        var over: Set<String> = []
        for entry in entries {
            do {
                try await tell(entry)
                over.insert(entry.id)
            } catch {
                let isKept = error is CancellationError || (error as? TokenError)?.isTransient == true
                if !isKept { over.insert(entry.id) }
                undone.append(.init(entry.step, "\(error)", isKept: isKept))
            }
        }
        do {
            try await storing { try await pending.change(removing: over, now: clock.now) }
            return (undone, nil)
        } catch {
            return (undone, error as? TokenError)
        }
    }

    private func tell(_ entry: PendingSignOuts.Entry) async throws {
        switch entry.step {
        case .revokeTokens: try await provider.revoke(entry.secret, isRefreshToken: entry.isRefreshToken)
        case .endProviderSession: try await provider.endSession(idToken: entry.secret)
        case .endSession: try await sessions?.end(Session(token: entry.secret, realm: entry.realm))
        }
    }

    private func failure(of body: () async throws -> Void) async -> TokenError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? TokenError ?? TokenError(.storageFailed, "\(type(of: error))")
        }
    }

    private func storing<Result>(_ body: () async throws -> Result) async throws -> Result {
        do { return try await body() } catch let error as SecretStoreError { throw TokenError(error: error) }
    }
}
