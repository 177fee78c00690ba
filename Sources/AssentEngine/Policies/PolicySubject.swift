import AssentCore

/// Whom a policy is for.
package indirect enum PolicySubject: Sendable, Hashable {
    /// All of them must match.
    case and([PolicySubject])
    /// One of them must match.
    case or([PolicySubject])
    /// It must not match somebody with a live session. Nobody matches it without one: who is unknown is not known to be
    /// another.
    case not(PolicySubject)
    /// Whoever has a live session.
    case authenticatedUsers
    /// Nobody: the policy never applies.
    case none
    /// The users with these universal ids, for example `id=ana,ou=user,o=alpha`.
    case identity([String])

    /// Whether the policy is for the user of this session; `nil` is somebody without one.
    package func matches(_ session: LiveSession?) -> Bool {
        switch self {
        case .and(let subjects): subjects.allSatisfy { $0.matches(session) }
        case .or(let subjects): subjects.contains { $0.matches(session) }
        case .not(let subject): session != nil && !subject.matches(session)
        case .authenticatedUsers: session != nil
        case .none: false
        case .identity(let ids): session.map { ids.contains($0.user.universalID) } ?? false
        }
    }

    /// The subject as AM's JSON.
    var json: JSONValue {
        switch self {
        case .and(let subjects): ["type": "AND", "subjects": .array(subjects.map(\.json))]
        case .or(let subjects): ["type": "OR", "subjects": .array(subjects.map(\.json))]
        case .not(let subject): ["type": "NOT", "subject": subject.json]
        case .authenticatedUsers: ["type": "AuthenticatedUsers"]
        case .none: ["type": "NONE"]
        case .identity(let ids): ["type": "Identity", "subjectValues": .array(ids.map { .string($0) })]
        }
    }
}
