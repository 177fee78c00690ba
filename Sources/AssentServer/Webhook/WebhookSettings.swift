import AssentCore

/// What the operator's file says of the service that brings users what concerns their devices.
struct WebhookSettings: Sendable {
    /// Where messages go.
    let url: String

    /// What they are signed with; the service knows it, too.
    let key: Secret
}
