import AssentCore

/// Tells those in this process who keep something of an installation in memory that it has ended. Who learns it only
/// here must not depend on it where nodes share a database: another node may end it.
final class EndedInstallations: Sendable {
    private let listeners = Locked<[@Sendable (String) -> Void]>([])

    /// - Parameter listener: gets the client id of each installation that has ended; what it keeps must not need this.
    func listen(_ listener: @escaping @Sendable (String) -> Void) {
        listeners.withLock { $0.append(listener) }
    }

    /// Due when the end is in the database.
    func tell(_ client: String) {
        for listener in listeners.withLock({ $0 }) { listener(client) }
    }
}
