package import AssentPayload

/// Whose session of payload encryption the request that the current task answers has come through
/// (docs/payload-encryption.md, "The server's switch").
package enum SealedSession {
    /// `nil` for a plain request.
    @TaskLocal package static var peer: PayloadPeer?

    /// Whether the credentials of a client, be they its own or an access token, count here.
    ///
    /// A session that a device's key has made is that device's alone. Any other session proves nothing about who has
    /// made it: it counts as much as a plain call, and does not where plain calls are refused.
    ///
    /// - Parameters:
    ///   - client: the client's id.
    ///   - requiresSealing: whether what comes plainly by it is refused.
    ///   - isSealed: whether the request has come sealed.
    /// - Returns: why they do not; `nil` when they do.
    static func refusal(of client: String, requiresSealing: Bool, isSealed: Bool) -> EngineError.Code? {
        guard isSealed else { return requiresSealing ? .payloadEncryptionRequired : nil }
        guard OAuthApp.id(ofInstance: client) != nil else { return nil }
        guard let own = peer?.client else { return requiresSealing ? .payloadEncryptionMismatch : nil }
        return own.utf8.elementsEqual(client.utf8) ? nil : .payloadEncryptionMismatch
    }
}

extension EngineError.Code {
    /// Whether a request is refused for how it has come, plainly or sealed, and not for what it is.
    package var isAboutSealing: Bool { self == .payloadEncryptionRequired || self == .payloadEncryptionMismatch }
}
