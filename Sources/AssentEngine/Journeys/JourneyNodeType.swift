package import AssentCore

/// A type of node. An implementation is a small value that is made of a node's settings, once, when the server starts;
/// whatever changes while a journey runs is in the ``NodeContext``.
package protocol JourneyNodeType: Sendable {
    /// The name that journeys call it by.
    static var name: String { get }

    /// A node from its settings. What is wrong with them is noted in `settings`; the node must still be made.
    init(_ settings: NodeSettings)

    /// Its possible outcomes, in the order in which they are told to the operator.
    var outcomes: [String] { get }

    /// Asks, or decides.
    ///
    /// It is called without answers when the journey arrives at it, and again with answers each time that the user has
    /// answered what it asked.
    func process(_ context: inout NodeContext) async throws -> NodeResult
}

/// What a node wants next.
package enum NodeResult: Sendable, Hashable {
    /// The user is to be asked this.
    case ask([CallbackPrompt])
    /// The journey goes on by this outcome.
    case outcome(String)
}

/// What a node sees and may change.
package struct NodeContext: Sendable {
    /// The node's own id.
    package var nodeID: String

    /// The realm.
    package let realm: String

    /// What the user has answered to this node, one for each callback that it asked; `nil` when it has not asked yet.
    package var answers: [CallbackAnswer]?

    /// What the nodes tell each other, kept sealed between the pages. Never a password.
    package var shared: JSONObject

    /// What this node has noted for itself while it waits for answers; gone when it has decided.
    package var memory: JSONObject

    /// The password that was collected. It lives as long as one request: a node that checks it must come before the next page.
    package var password: Secret?

    /// Who the journey is about and who has been proved to be there.
    package var subject: JourneySubject

    /// What is to be approved, in a transaction.
    package let approval: PendingApproval?

    /// The level that the session will have.
    package var authLevel: Int

    /// What the session will have noted.
    package var sessionProperties: [String: String]

    /// How long the session may live.
    package var sessionLimits: SessionLimits

    /// Why the journey will have failed, when there is more to say than that it has.
    package var failure: JourneyFailure?

    /// A header field of the request, by its name in any case.
    package let header: @Sendable (String) -> String?

    /// Whether the journey has just begun and the request had no body: the only request whose header fields count.
    package let isFirstRequest: Bool

    /// What nodes may use.
    package let services: JourneyServices
}

extension NodeContext {
    /// Who is to be checked: the user named in this journey, or the one who is already known.
    package func claimedUser() async throws -> User? {
        if let username = subject.username {
            return try await services.users.find(username: username, realm: realm)
        }
        guard let id = subject.userID else { return nil }
        return try await services.users.find(id: id)
    }
}

/// Who a journey is about.
package struct JourneySubject: Sendable, Hashable {
    /// The name that was given; nobody has proved it.
    package var username: String?

    /// Who has been proved to be there: by a node, or by the session that came with the request.
    package private(set) var userID: String?

    /// Whether ``userID`` was inherited from a session.
    package let hasSession: Bool

    /// Whether a node has proved it; if not, it holds only as long as the session does.
    package private(set) var isProved: Bool

    /// Whether something proved another user than the one who was there.
    package private(set) var changed = false

    /// Somebody; the user id is that of the session, when there is one.
    package init(
        username: String? = nil, userID: String? = nil, hasSession: Bool = false, isProved: Bool = false
    ) {
        self.username = username
        self.userID = userID
        self.hasSession = hasSession
        self.isProved = isProved
    }

    /// Notes that a node has proved who is there. A journey never changes from one user to another.
    package mutating func prove(_ user: User) {
        if let userID, userID != user.id {
            changed = true
            return
        }
        userID = user.id
        isProved = true
    }
}

/// Why a journey has failed, when the client is to be told more than that.
package enum JourneyFailure: String, Sendable, Hashable {
    /// Too many attempts.
    case locked
    /// The user said no to a transaction.
    case declined
}

/// What nodes may use.
package struct JourneyServices: Sendable {
    /// The users.
    package let users: Users

    /// The passwords.
    package let passwords: Passwords

    /// The one-time passwords.
    package let oneTimePasswords: OneTimePasswords

    /// Services of a context.
    package init(users: Users, passwords: Passwords, oneTimePasswords: OneTimePasswords) {
        self.users = users
        self.passwords = passwords
        self.oneTimePasswords = oneTimePasswords
    }
}
