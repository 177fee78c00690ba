import AssentEnforcement

/// A request that may reach its handler.
struct Permission: Sendable {
    /// What the handler may know.
    let access: EnforcedAccess

    /// The nonce for the client's next proof, where it is time for a new one.
    var newNonce: String?

    /// What tells the server of the outcome; `nil` where it does not want to hear it.
    var report: (@Sendable (EnforcementOutcome) -> OutcomeReports.Report)?
}
