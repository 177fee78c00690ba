import AssentCore
import AssentStore

/// A session's row as it begins.
struct NewSession: Sendable {
    let id: String
    let auditID: String
    let userID: String
    /// Under which the user has proved who they are.
    let epoch: Int64?
    let realm: String
    let authLevel: Int
    /// When the user has proved who they are, in seconds since 1970. Its longest life is counted from then on.
    var authTime: Int64
    let limits: SessionLimits
    var kind: SessionKind
    let isOfJourney: Bool
    /// How strongly its journey itself has proved who the user is.
    var journeyLevel = 0
    var properties = JSONObject()
    var sender: SenderBinding?
    var acr: String?
    var amr: [String] = []
    /// The container that it ends with.
    var container: String?

    /// What begins it. It fails unless the user's epoch is still ``epoch``.
    func statement(at now: Int64) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO sessions
                (id, audit_id, user_id, realm, auth_level, created_at, latest_access, max_idle, expires_at, properties,
                epoch, sender, acr, amr, kind, is_of_journey, journey_level, did)
            SELECT \(id), \(auditID), \(userID), \(realm), \(authLevel), \(authTime), \(now), \(limits.maxIdle),
                \(authTime + limits.maxSession), \(JSONValue.object(properties).serialized()), epoch,
                \(sender?.stored), \(acr), \(AuthenticationMethods.text(amr)),
                \(kind.rawValue), \(isOfJourney), \(journeyLevel), \(container)
            FROM users WHERE id = \(userID) AND epoch = \(epoch)
            """, expecting: .exactly(1))
    }
}

/// How a user has signed in (`amr`, RFC 8176), as a column has it.
enum AuthenticationMethods {
    /// The methods with a space between, or NULL where nothing is known of them.
    static func text(_ methods: [String]) -> String? { methods.isEmpty ? nil : methods.joined(separator: " ") }

    /// The methods of a column.
    static func read(_ text: String?) -> [String] { text?.split(separator: " ").map(String.init) ?? [] }
}
