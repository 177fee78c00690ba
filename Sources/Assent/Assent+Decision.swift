public import AssentAuthorization
public import AssentJourney

extension Assent {
    /// Asks AM directly what the user may do with a resource, for a service that trusts the app to ask. Where AM wants
    /// an approval or a journey, `approve` is called, and AM is asked again.
    ///
    /// ```swift
    /// let decision = try await assent.decision(on: "https://api.bank.example:443/accounts") { approval in
    ///     if approval.isFirstStep {
    ///         guard await screen.confirm(approval.display) else { return .decline }
    ///     }
    ///     if let waiting = approval.waiting { await screen.show(waiting.text) }
    ///     approval.agree()
    ///     return .next
    /// }
    /// return decision.allows("GET")
    /// ```
    ///
    /// What an app decides protects nothing from the app: a service that matters asks AM itself, or has a gateway.
    ///
    /// - Parameters:
    ///   - url: the resource, exactly as the policies are to see it.
    ///   - application: the policy set.
    ///   - approve: is called with each step of the journey, in the caller's isolation.
    /// - Returns: what AM decided in the end.
    /// - Throws: `AuthorizationError`, `JourneyError`, `JourneyFailure`, `TokenError` with code `storageFailed`, and
    ///   what `approve` throws; see `AuthorizedClient.decision(on:application:approve:)`.
    public func decision(
        on url: String, application: String = AuthorizedClient.defaultApplication,
        approve: (inout Approval) async throws -> StepAction
    ) async throws -> ResourceDecision {
        try await authorizedClient.decision(on: url, application: application, approve: approve)
    }
}
