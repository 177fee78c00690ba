import AssentCore

/// A journey while a page waits for its answer. It is stored sealed, and has no password in it.
struct JourneyState: Sendable, Hashable {
    /// The journey's name.
    let journey: String

    /// The realm.
    let realm: String

    /// When the journey expires, in seconds since 1970.
    let expiresAt: Int64

    /// The session that came with the first request, when it is of the realm.
    let sessionID: String?

    /// The user of that session.
    let sessionUserID: String?

    /// The session that ends when this journey begins one, and that says nothing in it.
    let replacedSessionID: String?

    /// The transaction that is to be approved.
    let transactionID: String?

    /// The thumbprint of the key that each request of the journey proves; `nil` for a journey that belongs to none.
    var keyThumbprint: String?

    /// Whether the session is of the kind `stateless` from its birth.
    var isStateless = false

    /// Whether the client wants no session. It may say so at any step.
    var noSession: Bool

    /// What the journey carries from page to page.
    var progress: JourneyProgress
}

extension JourneyState {
    /// The state of a journey that begins.
    init(
        _ journey: Journey, realm: String, session: LiveSession?, replacing replaced: LiveSession?,
        approval: PendingApproval?, noSession: Bool, limits: SessionLimits, now: Int64
    ) {
        let definition = journey.definition
        let expiresAt = now + definition.timeout
        self.init(
            journey: definition.name, realm: realm,
            expiresAt: approval.map { min($0.expiresAt, expiresAt) } ?? expiresAt, sessionID: session?.id,
            sessionUserID: session?.user.id, replacedSessionID: replaced?.id, transactionID: approval?.id,
            noSession: noSession || definition.noSession,
            progress: JourneyProgress(
                nodeID: definition.entry,
                subject: JourneySubject(
                    userID: session?.user.id, epoch: session?.user.epoch, hasSession: session != nil),
                authLevel: definition.authLevel, sessionLimits: limits))
    }

    /// Reads what ``json`` has written.
    ///
    /// - Throws: ``EngineError`` for anything else.
    init(_ json: JSONValue) throws {
        guard let journey = json["journey"]?.string, let realm = json["realm"]?.string,
            let expiresAt = json["expiresAt"]?.integer, let noSession = json["noSession"]?.bool,
            let progress = JourneyProgress(json["progress"])
        else { throw EngineError.internalFailure("a stored journey cannot be read") }
        self.init(
            journey: journey, realm: realm, expiresAt: expiresAt, sessionID: json["session"]?.string,
            sessionUserID: json["sessionUser"]?.string, replacedSessionID: json["replaces"]?.string,
            transactionID: json["transaction"]?.string, keyThumbprint: json["key"]?.string,
            isStateless: json["stateless"]?.bool ?? false, noSession: noSession, progress: progress)
    }

    /// The state as it is stored.
    var json: JSONValue {
        var object: JSONObject = [
            "journey": .string(journey), "realm": .string(realm), "expiresAt": .integer(expiresAt),
            "noSession": .bool(noSession), "progress": progress.json,
        ]
        object["session"] = sessionID.map(JSONValue.string)
        object["sessionUser"] = sessionUserID.map(JSONValue.string)
        object["replaces"] = replacedSessionID.map(JSONValue.string)
        object["transaction"] = transactionID.map(JSONValue.string)
        object["key"] = keyThumbprint.map(JSONValue.string)
        object["stateless"] = isStateless ? true : nil
        return .object(object)
    }
}
