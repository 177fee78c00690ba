import AssentCore

/// Who a journey is about.
package struct JourneySubject: Sendable, Hashable {
    /// The name that was given; nothing has proved it.
    package var username: String?

    /// The user who has been authenticated: by a node, or by the session that came with the request.
    package private(set) var userID: String?

    /// Whether ``userID`` was inherited from a session.
    package let hasSession: Bool

    /// Whether a node has authenticated the user; if not, ``userID`` holds only as long as the session does.
    package private(set) var isProved: Bool

    /// The user's epoch when they were first known: what was proved before a lock proves nothing after it.
    package private(set) var epoch: Int64?

    /// Whether a node authenticated a different user than the current one.
    package private(set) var changed = false

    /// Somebody; the user id and its epoch are those of the session, when there is one.
    package init(
        username: String? = nil, userID: String? = nil, epoch: Int64? = nil, hasSession: Bool = false,
        isProved: Bool = false
    ) {
        self.username = username
        self.userID = userID
        self.epoch = epoch
        self.hasSession = hasSession
        self.isProved = isProved
    }

    /// Notes that a node has authenticated `user`. A journey never changes from one user to another.
    package mutating func prove(_ user: User) {
        if let userID, userID != user.id {
            changed = true
            return
        }
        userID = user.id
        epoch = epoch ?? user.epoch
        isProved = true
    }
}

extension JourneySubject {
    /// Reads what ``json`` has written; `nil` for anything else.
    init?(_ json: JSONValue?) {
        guard let hasSession = json?["hasSession"]?.bool, let isProved = json?["proved"]?.bool,
            let changed = json?["changed"]?.bool
        else { return nil }
        self.init(
            username: json?["username"]?.string, userID: json?["user"]?.string, epoch: json?["epoch"]?.integer,
            hasSession: hasSession, isProved: isProved)
        self.changed = changed
    }

    /// The subject as it is stored between two pages.
    var json: JSONValue {
        var object: JSONObject = [
            "hasSession": .bool(hasSession), "proved": .bool(isProved), "changed": .bool(changed),
        ]
        object["username"] = username.map(JSONValue.string)
        object["user"] = userID.map(JSONValue.string)
        object["epoch"] = epoch.map { .integer($0) }
        return .object(object)
    }
}
