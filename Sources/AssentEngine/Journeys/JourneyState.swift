import AssentCore

/// Where a journey stands between two pages. It is stored sealed, and has no password in it.
struct JourneyState: Sendable {
    /// The journey's name.
    let journey: String

    /// The realm.
    let realm: String

    /// When the journey must have ended, in seconds since 1970.
    let expiresAt: Int64

    /// The session that came with the first request, when it is of the realm.
    let sessionID: String?

    /// Whose session that was.
    let sessionUserID: String?

    /// The session that ends when this journey begins one, without having said anything in it.
    var replacedSessionID: String?

    /// The transaction that is to be approved.
    let transactionID: String?

    /// Whether the client wants no session.
    let noSession: Bool

    /// The node that waits.
    var node: String

    /// What it asked.
    var pending = PendingCallbacks([])

    /// How many callbacks were put in front of what the node asked.
    var prefix = 0

    /// How many pages there were.
    var pages = 0

    var shared = JSONObject()
    var memory = JSONObject()
    var subject: JourneySubject
    var authLevel: Int
    var sessionProperties: [String: String] = [:]
    var sessionLimits: SessionLimits
    var failure: JourneyFailure?
}

extension JourneyState {
    init(
        _ journey: Journey, realm: String, session: LiveSession?, approval: PendingApproval?, noSession: Bool,
        limits: SessionLimits, now: Int64
    ) {
        let definition = journey.definition
        let expiresAt = now + definition.timeout
        self.init(
            journey: definition.name, realm: realm,
            expiresAt: approval.map { min($0.expiresAt, expiresAt) } ?? expiresAt, sessionID: session?.id,
            sessionUserID: session?.user.id, transactionID: approval?.id,
            noSession: noSession || definition.noSession, node: definition.entry,
            subject: JourneySubject(userID: session?.user.id, hasSession: session != nil),
            authLevel: definition.authLevel, sessionLimits: limits)
    }

    /// Reads what ``json`` has written.
    init(_ json: JSONValue) throws {
        guard let journey = json["journey"]?.string, let realm = json["realm"]?.string,
            let expiresAt = json["expiresAt"]?.integer, let node = json["node"]?.string,
            let pending = json["pending"], let shared = json["shared"]?.object, let memory = json["memory"]?.object,
            let authLevel = json["authLevel"]?.integer, let maxSession = json["maxSession"]?.integer,
            let maxIdle = json["maxIdle"]?.integer
        else { throw EngineError(status: 500, "a stored journey cannot be read") }
        let sessionID = json["session"]?.string
        self.init(
            journey: journey, realm: realm, expiresAt: expiresAt, sessionID: sessionID,
            sessionUserID: json["sessionUser"]?.string, replacedSessionID: json["replaces"]?.string,
            transactionID: json["transaction"]?.string,
            noSession: json["noSession"]?.bool ?? false, node: node, pending: try PendingCallbacks(pending),
            prefix: Int(json["prefix"]?.integer ?? 0), pages: Int(json["pages"]?.integer ?? 0), shared: shared,
            memory: memory,
            subject: JourneySubject(
                username: json["username"]?.string, userID: json["user"]?.string, hasSession: sessionID != nil,
                isProved: json["proved"]?.bool ?? false),
            authLevel: Int(authLevel), sessionProperties: [:],
            sessionLimits: SessionLimits(maxSession: maxSession, maxIdle: maxIdle),
            failure: json["failure"]?.string.flatMap(JourneyFailure.init))
        for member in json["properties"]?.object?.members ?? [] {
            sessionProperties[member.name] = member.value.string
        }
    }

    var json: JSONValue {
        var object = JSONObject([
            .init(name: "journey", value: .string(journey)), .init(name: "realm", value: .string(realm)),
            .init(name: "expiresAt", value: .integer(expiresAt)), .init(name: "node", value: .string(node)),
            .init(name: "pending", value: pending.json), .init(name: "prefix", value: .integer(prefix)),
            .init(name: "pages", value: .integer(pages)), .init(name: "shared", value: .object(shared)),
            .init(name: "memory", value: .object(memory)), .init(name: "authLevel", value: .integer(authLevel)),
            .init(name: "noSession", value: .bool(noSession)),
        ])
        object["session"] = sessionID.map(JSONValue.string)
        object["sessionUser"] = sessionUserID.map(JSONValue.string)
        object["replaces"] = replacedSessionID.map(JSONValue.string)
        object["transaction"] = transactionID.map(JSONValue.string)
        object["username"] = subject.username.map(JSONValue.string)
        object["user"] = subject.userID.map(JSONValue.string)
        object["proved"] = .bool(subject.isProved)
        object["failure"] = failure.map { .string($0.rawValue) }
        object["maxSession"] = .integer(sessionLimits.maxSession)
        object["maxIdle"] = .integer(sessionLimits.maxIdle)
        object["properties"] = .object(
            JSONObject(
                sessionProperties.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: .string($0.value)) }))
        return .object(object)
    }
}
