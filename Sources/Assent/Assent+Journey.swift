import AssentAuthorization
public import AssentCore
public import AssentJourney
import AssentTokens

extension Assent {
    /// Runs journeys and keeps their session: the user is signed in when one ends, unless it was to make no session.
    public struct Journey: Sendable {
        let client: JourneyClient
        let tokens: TokenManager

        /// Knows the key that sessions belong to.
        let proofs: SessionProofs

        /// A sign-in takes the place of who is signed in in memory.
        let current: CurrentUser

        /// Knows which advices are believed.
        let authorized: AuthorizedClient

        /// Walks a journey to its end and stores its session before it returns. A session that is stored goes along,
        /// unless somebody is signed in in memory: it may be another user's.
        ///
        /// ```swift
        /// try await assent.journey("Login") { step in
        ///     for prompt in step.unanswered { await screen.show(prompt) }
        ///     step[NameCallback.self]?.name = try await screen.name()
        ///     step[PasswordCallback.self]?.password = try await screen.password()
        ///     return .next
        /// }
        /// ```
        ///
        /// - Parameters:
        ///   - tree: the journey's name; `nil` for the realm's default.
        ///   - options: how to start.
        ///   - handler: answers a step, in the caller's isolation.
        /// - Returns: the session.
        /// - Throws: `JourneyError` when the server refuses, `JourneyFailure` when the journey cannot go on,
        ///   `CancellationError`, `TokenError` when the session could not be stored, and what `handler` throws.
        @discardableResult
        public func callAsFunction(
            _ tree: String? = nil, options: JourneyOptions = JourneyOptions(),
            handler: (inout JourneyStep) async throws -> StepAction
        ) async throws -> Session {
            let session = try await client.run(
                tree, options: options, session: try await ownSession(), handler: handler)
            try await keep(session)
            return session
        }

        /// Walks the journey that an advice asks for, on top of the user's session, for an app that sends its calls by
        /// another way and sends the approved call itself.
        ///
        /// ```swift
        /// guard let advice = try Advice(challenge: field) else { return false }
        /// try await assent.journey(advice: advice) { step in
        ///     step[PasswordCallback.self]?.password = try await screen.password()
        ///     return .next
        /// }
        /// ```
        ///
        /// Nothing is compared here with the call that will be repeated: what the step says is approved is for the app
        /// to compare. ``Assent/send(_:approve:)`` does it.
        ///
        /// - Parameters:
        ///   - advice: what the resource wants.
        ///   - handler: answers a step, in the caller's isolation.
        /// - Returns: the session; another one where the journey added to it.
        /// - Throws: `AuthorizationError` with code `untrustedAdvice` when the advice names another server than the
        ///   configured one, `noSession`, and `sessionChanged` when somebody has signed out, or in, meanwhile;
        ///   otherwise as ``callAsFunction(_:options:handler:)``.
        @discardableResult
        public func callAsFunction(
            advice: Advice, handler: (inout JourneyStep) async throws -> StepAction
        ) async throws -> Session {
            try authorized.check(advice)
            let user = current.tokens
            guard let session = try await user.session() else {
                throw AuthorizationError(.noSession, "There is no session to follow the advice with.")
            }
            let result = try await client.run(advice: advice.nextToMeet, session: session, handler: handler)
            guard !result.token.isEmpty, result.token != session.token else { return session }
            guard advice.transactionID == nil || advice.nextToMeet.transactionID == nil else {
                throw AuthorizationError(
                    .sessionChanged,
                    "The journey ended with another session, so the approval is not this session's.")
            }
            guard try await StepUpSessions(user).install(result, inPlaceOf: session) else {
                throw AuthorizationError.signedOutMeanwhile
            }
            return result
        }

        /// Starts a journey, for an app that walks it node by node and draws screens of its own.
        ///
        /// ```swift
        /// switch await assent.journey.start("Login") {
        /// case .continue(let step): return await screen.draw(step)
        /// case .success(let session): return await screen.show("signed in to \(session.realm)")
        /// case .error(let error): return await screen.show(error.message)
        /// case .failure(let failure): return await screen.show(failure.detail)
        /// }
        /// ```
        ///
        /// - Parameters:
        ///   - tree: the journey's name; `nil` for the realm's default.
        ///   - options: how to start.
        /// - Returns: the first step, the session, or why there is none.
        public func start(_ tree: String? = nil, options: JourneyOptions = JourneyOptions()) async -> JourneyNode {
            await withStoredSession { await kept(client.start(tree, options: options, session: $0)) }
        }

        /// Goes on with a journey that the server suspended, from the link that the user got by mail.
        ///
        /// - Parameters:
        ///   - url: the link.
        ///   - options: how to start.
        /// - Returns: the next step, the session, or why there is none.
        public func resume(_ url: String, options: JourneyOptions = JourneyOptions()) async -> JourneyNode {
            await withStoredSession { await kept(client.resume(url, options: options, session: $0)) }
        }

        /// Sends the answers of a step.
        ///
        /// ```swift
        /// var step = step
        /// step[PasswordCallback.self]?.password = try await screen.password()
        /// return await assent.journey.next(step)
        /// ```
        ///
        /// - Returns: the next step, the session, or why there is none.
        public func next(_ step: JourneyStep) async -> JourneyNode {
            await kept(client.next(step))
        }

        /// The stored session, where it is that of the current user.
        private func ownSession() async throws -> Session? {
            guard current.inMemory == nil else { return nil }
            return try await proofs.usable(try await tokens.session())
        }

        private func withStoredSession(_ body: (Session?) async -> JourneyNode) async -> JourneyNode {
            do {
                return await body(try await ownSession())
            } catch {
                return .failure(
                    JourneyFailure(.storageFailed, "The stored session cannot be read: \(error.explanationOrType)"))
            }
        }

        private func kept(_ node: JourneyNode) async -> JourneyNode {
            guard case .success(let session) = node else { return node }
            do {
                try await keep(session)
                return node
            } catch {
                return .failure(
                    JourneyFailure(.storageFailed, "The new session could not be kept: \(error.explanationOrType)"))
            }
        }

        private func keep(_ session: Session) async throws {
            guard !session.token.isEmpty else { return }
            try await tokens.install(session)
            // A journey that ends with the same session is a sign-in as well.
            current.cookies.removeAll()
            if let login = current.drop(abandoning: false) { _ = await login.tokens.signOut() }
        }
    }
}
