import AssentCore

/// Tells those in this process who keep something of an installation in memory that it has ended, or has another key.
/// Who learns it only here must not depend on it where nodes share a database: another node may end or change it.
final class EndedInstallations: Sendable {
    private let listeners = Locked<[@Sendable (String, String?) -> Void]>([])

    /// - Parameter listener: gets the client id of each installation that has ended, or the client id and the
    ///   thumbprint of the new key of one that has changed it; what it keeps must not need this.
    func listen(_ listener: @escaping @Sendable (String, String?) -> Void) {
        listeners.withLock { $0.append(listener) }
    }

    /// Due when the end, or the change to another key, is in the database.
    func tell(_ client: String, newKey: String? = nil) {
        for listener in listeners.withLock({ $0 }) { listener(client, newKey) }
    }
}
