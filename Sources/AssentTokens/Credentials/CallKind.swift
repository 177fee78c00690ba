/// Whose call to a resource it is. The table is in `docs/resources.md`.
public enum CallKind: String, Hashable, Sendable, CaseIterable, CustomStringConvertible {
    /// The signed-in user's.
    case user
    /// A remembered user's, who has typed nothing.
    case implicit
    /// The installation's.
    case device
    /// Nobody's: it goes out without a credential.
    case nobody

    /// The name.
    public var description: String { rawValue }
}
