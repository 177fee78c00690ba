import AssentCore
import Testing

@testable import AssentEngine

@Suite("What a journey carries between its pages")
struct JourneyProgressTests {
    private static let approval = PendingApproval(
        id: "t1", journey: "Confirm", method: "POST", resource: "https://api.bank.example:443/transfers?a=1",
        contentType: "application/json", bodySHA256: "abc", display: [DisplayField(label: "To", value: "Bob")],
        expiresAt: 99)

    static let prompts: [CallbackPrompt] = [
        .name("User"), .password("Secret"), .textInput("Code"), .textInput("Code", default: "123"),
        .textOutput("Hello"),
        .textOutput("Careful", kind: .warning), .textOutput("No", kind: .error), .textOutput("x()", kind: .script),
        .choice("Which?", choices: ["a", "b"], default: 1), .confirmation(["Yes", "No"], default: 1),
        .hiddenValue(id: "clientId", value: "x"), .approval(approval),
        .custom(CustomCallback("PollingWaitCallback", outputs: ["waitTime": "5000", "n": 7])),
        .custom(
            CustomCallback(
                "DeviceBindingCallback",
                inputs: [.text(part: "jws"), .text("x", part: "deviceName"), .index(of: 3, initial: 2)])),
    ]

    private static func begun(_ subject: JourneySubject = JourneySubject()) -> JourneyProgress {
        JourneyProgress(nodeID: "entry", subject: subject, authLevel: 0, sessionLimits: SessionLimits())
    }

    /// A progress of which no member is as it is when a journey begins.
    private static let full: JourneyProgress = {
        var subject = JourneySubject(username: "ana", hasSession: true)
        subject.prove(user("1"))
        subject.prove(user("2"))
        var progress = begun(subject)
        progress.nodeID = "later"
        progress.asked = prompts
        progress.added = 2
        progress.presentation = PagePresentation(stage: "S", header: "H", description: "D")
        progress.isAskedAgain = true
        progress.pages = 3
        progress.polls = 1
        progress.shared = ["retries.a": 1]
        progress.memory = ["counts": [1, 0]]
        progress.authLevel = 7
        progress.sessionProperties = ["channel": "app", "a": "b"]
        progress.sessionLimits = SessionLimits(maxSession: 60, maxIdle: 30)
        progress.failure = .declined
        progress.isSigned = true
        return progress
    }()

    private static func user(_ id: String) -> User {
        User(
            id: id, realm: "/alpha", username: "u\(id)", isActive: true, roles: [], attributes: JSONObject(),
            epoch: 1)
    }

    private static func members(_ value: Any) -> [String: String] {
        var members: [String: String] = [:]
        for child in Mirror(reflecting: value).children { members[child.label ?? ""] = "\(child.value)" }
        return members
    }

    @Test("Every member is stored and read again")
    func roundTrip() throws {
        let text = Self.full.json.serializedBytes()
        #expect(try JourneyProgress(JSONValue.parse(text)) == Self.full)
        #expect(JourneyProgress(Self.begun().json) == Self.begun())
        // A member that is added must also be changed in this test, or its storing would not be tested.
        let begun = Self.members(Self.begun())
        for (name, value) in Self.members(Self.full) { #expect(begun[name] != value, "\(name)") }
        let subject = Self.members(JourneySubject())
        for (name, value) in Self.members(Self.full.subject) { #expect(subject[name] != value, "\(name)") }
    }

    @Test("A whole state is stored and read again, with and without what may be missing")
    func state() throws {
        let full = JourneyState(
            journey: "Login", realm: "/alpha", expiresAt: 300, sessionID: "s", sessionUserID: "u",
            replacedSessionID: "r", transactionID: "t", keyThumbprint: "k", noSession: true, progress: Self.full)
        let bare = JourneyState(
            journey: "Login", realm: "/alpha", expiresAt: 300, sessionID: nil, sessionUserID: nil,
            replacedSessionID: nil, transactionID: nil, noSession: false, progress: Self.begun())
        for state in [full, bare] {
            #expect(try JourneyState(JSONValue.parse(state.json.serializedBytes())) == state)
        }
    }

    @Test(
        "A state with a part that is missing or has another form is not read", arguments: full.json.object?.names ?? [])
    func damaged(name: String) throws {
        var object = try #require(Self.full.json.object)
        object[name] = ["another": "form"]
        // These members are objects themselves: theirs is another form only when it is none.
        if ["shared", "memory", "presentation"].contains(name) { object[name] = 7 }
        if name == "properties" { object[name] = [] }
        if name == "failure" { object[name] = "unheard of" }
        #expect(JourneyProgress(.object(object)) == nil)
        if !["failure", "polls"].contains(name) {
            object[name] = nil
            #expect(JourneyProgress(.object(object)) == nil)
        }
        #expect(throws: EngineError.self) { try JourneyState(["journey": "x", "progress": .object(object)]) }
    }

    @Test("What an earlier version stored is refused, not guessed at")
    func earlierVersion() {
        let state: JSONValue = [
            "journey": "Login", "realm": "/alpha", "expiresAt": 1, "node": "a", "pending": [], "prefix": 0, "pages": 1,
            "shared": [:], "memory": [:], "authLevel": 0, "noSession": false, "proved": false, "maxSession": 1,
            "maxIdle": 1, "properties": [:],
        ]
        #expect(throws: EngineError.self) { try JourneyState(state) }
        let page: JSONValue = ["authId": "x", "page": ["callbacks": []]]
        #expect(throws: EngineError.self) { try StoredReply(Secret(bytes: page.serializedBytes())) }
    }

    @Test("Each kind of prompt asks for what its client sends back, and is stored", arguments: prompts)
    func prompt(prompt: CallbackPrompt) throws {
        #expect(try CallbackPrompt(JSONValue.parse(prompt.json.serializedBytes())) == prompt)
        let answers = prompt.inputs.map { input in
            ReturnedInput(name: InputName(place: 1, part: input.part), value: .init(input.initial))
        }
        let returned = ReturnedCallback(kind: prompt.kind, inputs: answers)
        let responses = try CallbackMatching(asked: [prompt]).responses(in: [returned])
        #expect(responses.map(\.values.count) == [prompt.inputs.count])
    }

    @Test("A prompt that nobody knows, or with a part missing, is not read")
    func unknownPrompts() {
        let damaged: [JSONValue] = [
            [:], [], "name", ["other": "x"], ["textOutput": "x", "kind": 3], ["textOutput": "x"], ["choice": "x"],
            ["choice": "x", "choices": ["a"]], ["confirmation": "x", "default": 0], ["approval": [:]],
            ["custom": "x"], ["custom": "x", "outputs": [:]],
        ]
        for json in damaged { #expect(CallbackPrompt(json) == nil, "\(json)") }
    }
}
