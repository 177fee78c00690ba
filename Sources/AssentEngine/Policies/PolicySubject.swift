package import AssentCore

/// Whom a policy is for.
package indirect enum PolicySubject: Sendable, Hashable {
    /// All of them must match.
    case and([PolicySubject])
    /// One of them must match.
    case or([PolicySubject])
    /// It must not match a user who is known. It never matches somebody unknown, who could be anybody, nor a client
    /// that calls for itself, which is not a user.
    case not(PolicySubject)
    /// Every user who is known.
    case authenticatedUsers
    /// Nobody: the policy never applies.
    case none
    /// The users with these universal ids, for example `id=ana,ou=user,o=alpha`.
    case identity([String])
    /// Installations of these apps that call for themselves.
    case app([String])
    /// These clients of the file, where they call for themselves.
    case client([String])

    /// Those whose verified token has a claim with this value, or with a list that has it. They have no session, so
    /// that no transaction is for them.
    case jwtClaim(name: String, value: String)

    /// Whether the policy is for this user, for a client that calls for itself, or for the subject of a token with
    /// these claims. Somebody unknown is none of them.
    package func matches(_ user: User?, client: ClientItself? = nil, claims: JSONObject? = nil) -> Bool {
        switch self {
        case .and(let subjects): subjects.allSatisfy { $0.matches(user, client: client, claims: claims) }
        case .or(let subjects): subjects.contains { $0.matches(user, client: client, claims: claims) }
        case .not(let subject): user != nil && !subject.matches(user)
        case .authenticatedUsers: user != nil
        case .none: false
        case .identity(let ids): user.map { ids.contains($0.universalID) } ?? false
        case .app(let apps): if case .installation(let app)? = client { apps.contains(app) } else { false }
        case .client(let ids): if case .client(let id)? = client { ids.contains(id) } else { false }
        case .jwtClaim(let name, let value):
            claims?[name].map { $0.string == value || $0.strings?.contains(value) == true } ?? false
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
        case .app(let apps): ["type": "App", "apps": .array(apps.map { .string($0) })]
        case .client(let ids): ["type": "Client", "ids": .array(ids.map { .string($0) })]
        case .jwtClaim(let name, let value):
            ["type": "JwtClaim", "claimName": .string(name), "claimValue": .string(value)]
        }
    }
}
