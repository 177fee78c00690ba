package import AssentCore

/// What a journey carries from page to page. Nodes read and change it in their ``NodeContext``; ``JourneyState`` keeps
/// it, sealed, while a page waits. It never has a password in it.
///
/// A new field needs this file alone: the member, and its line in ``json`` and in the initialiser beside it.
package struct JourneyProgress: Sendable, Hashable {
    /// The node where the journey stands.
    package var nodeID: String

    /// What the waiting page has asked.
    package var asked: [CallbackPrompt] = []

    /// How the waiting page may look.
    package var presentation = PagePresentation.plain

    /// Whether the waiting page asks what the page before it has asked.
    package var isAskedAgain = false

    /// How many callbacks the engine put in front of what the node asked.
    package var added = 0

    /// How many pages there were.
    package var pages = 0

    /// How many of them only asked again whether something has happened elsewhere.
    package var polls = 0

    /// What the nodes tell each other.
    package var shared = JSONObject()

    /// What the node at ``nodeID`` has noted for itself while it waits for answers; gone when it has decided.
    package var memory = JSONObject()

    /// Who the journey is about and who has been authenticated.
    package var subject: JourneySubject

    /// The level that the session will have.
    package var authLevel: Int

    /// What the session will have noted.
    package var sessionProperties: [String: String] = [:]

    /// How long the session may live.
    package var sessionLimits: SessionLimits

    /// Whether the user has signed on a device what is to be approved.
    package var isSigned = false

    /// Why the journey will have failed, when there is more to say than that it has.
    package var failure: FailureCause?

    /// Notes that something is decided anew, for example by a code instead of a device: an earlier failure is then
    /// forgotten, but a user who declined has declined.
    mutating func decideAnew() {
        if failure != .declined { failure = nil }
    }

    /// The progress of a journey that begins.
    package init(nodeID: String, subject: JourneySubject, authLevel: Int, sessionLimits: SessionLimits) {
        self.nodeID = nodeID
        self.subject = subject
        self.authLevel = authLevel
        self.sessionLimits = sessionLimits
    }
}

extension JourneyProgress {
    /// Reads what ``json`` has written; `nil` for anything else.
    init?(_ json: JSONValue?) {
        guard let json, let nodeID = json["node"]?.string, let asked = json["asked"]?.array,
            let added = json["added"]?.integer, let pages = json["pages"]?.integer,
            let shared = json["shared"]?.object, let memory = json["memory"]?.object,
            let subject = JourneySubject(json["subject"]), let authLevel = json["authLevel"]?.integer,
            let properties = json["properties"]?.object, let maxSession = json["maxSession"]?.integer,
            let maxIdle = json["maxIdle"]?.integer, let isSigned = json["signed"]?.bool,
            json["presentation"]?.object != nil, let isAskedAgain = json["again"]?.bool
        else { return nil }
        self.init(
            nodeID: nodeID, subject: subject, authLevel: Int(authLevel),
            sessionLimits: SessionLimits(maxSession: maxSession, maxIdle: maxIdle))
        let prompts = asked.compactMap(CallbackPrompt.init)
        guard prompts.count == asked.count else { return nil }
        self.asked = prompts
        self.added = Int(added)
        self.pages = Int(pages)
        if let polls = json["polls"] {
            guard let polls = polls.integer else { return nil }
            self.polls = Int(polls)
        }
        presentation = PagePresentation(json["presentation"])
        self.isAskedAgain = isAskedAgain
        self.shared = shared
        self.memory = memory
        for member in properties.members { sessionProperties[member.name] = member.value.string }
        self.isSigned = isSigned
        if let text = json["failure"]?.string {
            guard let cause = FailureCause(rawValue: text) else { return nil }
            failure = cause
        }
    }

    /// The progress as it is stored between two pages.
    var json: JSONValue {
        let properties = sessionProperties.sorted { $0.key < $1.key }
            .map { JSONObject.Member(name: $0.key, value: .string($0.value)) }
        var object: JSONObject = [
            "node": .string(nodeID), "asked": .array(asked.map(\.json)), "added": .integer(added),
            "pages": .integer(pages), "shared": .object(shared), "memory": .object(memory), "subject": subject.json,
            "authLevel": .integer(authLevel), "properties": .object(JSONObject(properties)),
            "maxSession": .integer(sessionLimits.maxSession), "maxIdle": .integer(sessionLimits.maxIdle),
            "signed": .bool(isSigned), "presentation": presentation.json, "again": .bool(isAskedAgain),
        ]
        if polls > 0 { object["polls"] = .integer(polls) }
        object["failure"] = failure.map { .string($0.rawValue) }
        return .object(object)
    }
}
