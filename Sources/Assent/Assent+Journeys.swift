public import AssentCore
public import AssentJourney
import AssentTokens

extension Assent {
    /// Journeys whose session is kept: the user is signed in when one ends, unless it was to make no session.
    public struct Journeys: Sendable {
        let client: JourneyClient
        let tokens: TokenManager

        /// Walks a journey to its end; see ``/AssentJourney/JourneyClient/run(_:options:session:handler:)``. The
        /// session that is stored goes along, the new one is stored before this returns.
        ///
        /// - Returns: the session.
        /// - Throws: ``/AssentJourney/JourneyError``, ``/AssentJourney/JourneyFailure``, `CancellationError`,
        ///   ``/AssentTokens/TokenError`` when the session could not be stored, and what `handler` throws.
        @discardableResult
        public func callAsFunction(
            _ tree: String? = nil, options: JourneyOptions = JourneyOptions(),
            handler: (inout JourneyStep) async throws -> StepAction
        ) async throws -> Session {
            let session = try await client.run(
                tree, options: options, session: try await tokens.session(), handler: handler)
            try await keep(session)
            return session
        }

        /// Starts a journey; see ``/AssentJourney/JourneyClient/start(_:options:session:)``.
        ///
        /// - Returns: the first step, or what else came of it.
        public func start(_ tree: String? = nil, options: JourneyOptions = JourneyOptions()) async -> JourneyNode {
            await withSession { await kept(client.start(tree, options: options, session: $0)) }
        }

        /// Goes on with a suspended journey; see ``/AssentJourney/JourneyClient/resume(_:options:session:)``.
        ///
        /// - Returns: the next step, or what else came of it.
        public func resume(_ url: String, options: JourneyOptions = JourneyOptions()) async -> JourneyNode {
            await withSession { await kept(client.resume(url, options: options, session: $0)) }
        }

        /// Sends the answers of a step; see ``/AssentJourney/JourneyClient/next(_:)``.
        ///
        /// - Returns: the next step, or what else came of it.
        public func next(_ step: JourneyStep) async -> JourneyNode {
            await kept(client.next(step))
        }

        private func withSession(_ body: (Session?) async -> JourneyNode) async -> JourneyNode {
            do {
                return await body(try await tokens.session())
            } catch {
                return .failure(JourneyFailure(.storageFailed, "the stored session cannot be read: \(error)"))
            }
        }

        private func kept(_ node: JourneyNode) async -> JourneyNode {
            guard case .success(let session) = node else { return node }
            do {
                try await keep(session)
                return node
            } catch {
                return .failure(JourneyFailure(.storageFailed, "the new session could not be kept: \(error)"))
            }
        }

        private func keep(_ session: Session) async throws {
            if !session.token.isEmpty { try await tokens.install(session) }
        }
    }
}
