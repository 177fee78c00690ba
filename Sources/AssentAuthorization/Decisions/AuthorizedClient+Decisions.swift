import AssentCore
public import AssentJourney
import AssentTokens

extension AuthorizedClient {
    /// AM's name of the policy set that is meant when none is named.
    public static let defaultApplication = "iPlanetAMWebAgentService"

    /// Asks AM directly what the user may do with a resource. Where AM wants an approval or a journey, it is run, and
    /// AM is asked again, with the transaction's id where there is one.
    ///
    /// An approval that is used here is used up: it lets no call through a gateway. AM is told no method and no
    /// content, so a server that binds them to the approval does not allow it by this way.
    ///
    /// - Parameters:
    ///   - url: the resource, exactly as the policies are to see it.
    ///   - application: the policy set.
    ///   - approve: is called with each step of the journey, in the caller's isolation.
    /// - Returns: what AM decided in the end.
    /// - Throws: ``AuthorizationError``: `noSession`, `refused` when AM asks again for what was just done,
    ///   `sessionChanged` when somebody has signed out, or in, since it was called, and as ``send(_:approve:)``;
    ///   ``/AssentJourney/JourneyError`` when AM refuses to answer, for example with status 403 where its users may not
    ///   ask; ``/AssentJourney/JourneyFailure``; what `approve` throws.
    public func decision(
        on url: String, application: String = defaultApplication,
        approve: (inout Approval) async throws -> StepAction
    ) async throws -> ResourceDecision {
        let terms = CallTerms(
            access: .nothing, policy: nil, requiresBinding: configuration.requiresBinding, signIn: source.signIn)
        var transactionID: String?
        var steps = 0
        while true {
            guard let session = try await source.user?.session() else {
                throw AuthorizationError(.noSession, "Only a user's access can be decided. There is no session.")
            }
            let answer = try await journeys.evaluate(
                url, application: application, session: session, transactionID: transactionID)
            // It may be about somebody who has signed in since, or go to that one.
            try checkUser(terms)
            let decision = try ResourceDecision(answer, of: url)
            guard let advice = decision.advice else { return decision }
            // One journey, and then one transaction, are all that AM may want of one access.
            guard transactionID == nil, steps < 2 else {
                throw AuthorizationError(.refused, "The server asks again for what was just done.")
            }
            steps += 1
            switch advice.kind {
            case .transaction(let id):
                do {
                    _ = try await stepUp(advice.nextToMeet, for: .init(resource: url), terms) { approval, _ in
                        try await approve(&approval)
                    }
                    transactionID = id
                } catch is OutdatedAdvice {
                    // Nothing was asked. AM is asked for another id, unless this was the second.
                    guard steps < 2 else {
                        throw AuthorizationError(.expired, "The transaction expired twice.")
                    }
                }
            case .service, .other(.authLevel, _):
                guard steps == 1 else {
                    throw AuthorizationError(.refused, "The server asks again for the journey that was just passed.")
                }
                _ = try await stepUp(advice.nextToMeet, for: .init(resource: url), terms) { approval, _ in
                    try await approve(&approval)
                }
            case .other(let name, _):
                throw AuthorizationError(
                    .unsupportedAdvice, "The server wants something that this library does not know: \(name).")
            }
        }
    }
}
