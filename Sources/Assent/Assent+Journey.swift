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

        /// Walks a journey to its end and stores its session before it returns. A session that is stored goes along.
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
                tree, options: options, session: try await proofs.usable(try await tokens.session()), handler: handler)
            try await keep(session)
            return session
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

        private func withStoredSession(_ body: (Session?) async -> JourneyNode) async -> JourneyNode {
            do {
                return await body(try await proofs.usable(try await tokens.session()))
            } catch {
                return .failure(
                    JourneyFailure(.storageFailed, "The stored session cannot be read: \(Assent.explanation(error))"))
            }
        }

        private func kept(_ node: JourneyNode) async -> JourneyNode {
            guard case .success(let session) = node else { return node }
            do {
                try await keep(session)
                return node
            } catch {
                return .failure(
                    JourneyFailure(.storageFailed, "The new session could not be kept: \(Assent.explanation(error))"))
            }
        }

        private func keep(_ session: Session) async throws {
            guard !session.token.isEmpty else { return }
            try await tokens.install(session)
            if let login = current.take(nil) { _ = await login.tokens.signOut() }
        }
    }
}
