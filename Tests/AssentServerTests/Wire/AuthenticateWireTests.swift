import AssentCore
import AssentTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("What authenticate writes and reads, as AM does")
struct AuthenticateWireTests {
    private static let approval = PendingApproval(
        id: "t1", journey: "Confirm", method: "POST", resource: "https://api.bank.example:443/transfers",
        contentType: "application/json", bodySHA256: "abc", display: [DisplayField(label: "To", value: "Bob")],
        expiresAt: 99)

    static let callbacks: [(CallbackPrompt, String)] = [
        (
            .name("User Name"),
            #"{"type":"NameCallback","output":[{"name":"prompt","value":"User Name"}],"input":[{"name":"IDToken3","value":""}],"_id":2}"#
        ),
        (
            .password("Password"),
            #"{"type":"PasswordCallback","output":[{"name":"prompt","value":"Password"}],"input":[{"name":"IDToken3","value":""}],"_id":2}"#
        ),
        (
            .textInput("Code", default: "1"),
            #"{"type":"TextInputCallback","output":[{"name":"prompt","value":"Code"},{"name":"defaultText","value":"1"}],"input":[{"name":"IDToken3","value":"1"}],"_id":2}"#
        ),
        (
            .textOutput("Hello", kind: .warning),
            #"{"type":"TextOutputCallback","output":[{"name":"message","value":"Hello"},{"name":"messageType","value":"1"}],"_id":2}"#
        ),
        (
            .choice("Which?", choices: ["a", "b"], default: 1),
            #"{"type":"ChoiceCallback","output":[{"name":"prompt","value":"Which?"},{"name":"choices","value":["a","b"]},{"name":"defaultChoice","value":1}],"input":[{"name":"IDToken3","value":1}],"_id":2}"#
        ),
        (
            .confirmation(["Yes", "No"], default: 1),
            #"{"type":"ConfirmationCallback","output":[{"name":"prompt","value":""},{"name":"messageType","value":0},{"name":"options","value":["Yes","No"]},{"name":"optionType","value":-1},{"name":"defaultOption","value":1}],"input":[{"name":"IDToken3","value":1}],"_id":2}"#
        ),
        (
            .hiddenValue(id: "clientId", value: "x"),
            #"{"type":"HiddenValueCallback","output":[{"name":"value","value":"x"},{"name":"id","value":"clientId"}],"input":[{"name":"IDToken3","value":"clientId"}],"_id":2}"#
        ),
        (
            .approval(approval),
            #"{"type":"MetadataCallback","output":[{"name":"data","value":{"_type":"AssentTransaction","transactionId":"t1","method":"POST","resource":"https://api.bank.example:443/transfers","contentType":"application/json","bodySHA256":"abc","display":[{"label":"To","value":"Bob"}],"expiresAt":99}}],"_id":2}"#
        ),
        (
            .custom(CustomCallback("X", outputs: ["a": 1], inputs: [.text(part: "jws"), .text("d", part: "name")])),
            #"{"type":"X","output":[{"name":"a","value":1}],"input":[{"name":"IDToken3jws","value":""},{"name":"IDToken3name","value":"d"}],"_id":2}"#
        ),
    ]

    @Test(
        "Each callback is written with AM's names, in AM's order, with inputs called by its place", arguments: callbacks
    )
    func callback(prompt: CallbackPrompt, text: String) {
        #expect(prompt.json(place: 3).serialized() == text)
    }

    @Test("What is not bound is not in the metadata")
    func unbound() {
        let approval = PendingApproval(
            id: "t1", journey: "Confirm", method: nil, resource: "https://api.bank.example:443/transfers",
            contentType: nil, bodySHA256: nil, display: [], expiresAt: 99)
        #expect(approval.json.object?.names == ["_type", "transactionId", "resource", "display", "expiresAt"])
    }

    @Test("A page and both kinds of success have AM's members in AM's order")
    func replies() {
        let content = PageContent(
            presentation: PagePresentation(stage: "S", header: "H", description: "D"), prompts: [.textOutput("x")])
        let page = AuthenticateReply.page(AuthenticatePage(authID: Secret("id"), content: content))
        #expect(page.json.object?.names == ["authId", "stage", "header", "description", "callbacks"])
        #expect(page.json["authId"] == "id" && page.json["stage"] == "S" && page.json["header"] == "H")
        #expect(PageContent(prompts: []).json.names == ["callbacks"])
        let success = AuthenticateSuccess(token: Secret("t"), isNewSession: true, successURL: "/console", realm: "/a")
        #expect(
            AuthenticateReply.success(success).json.serialized()
                == #"{"tokenId":"t","successUrl":"/console","realm":"/a"}"#)
        let none = AuthenticateSuccess(token: nil, isNewSession: false, successURL: "/", realm: "/a")
        #expect(AuthenticateReply.success(none).json.object?.names == ["successUrl", "realm"])
    }

    @Test("A body without an authId that is not empty is refused, and an empty one begins a journey")
    func pointers() throws {
        #expect(try PageAnswer(JSONObject(), bytes: []) == nil)
        let faults: [(JSONObject, String)] = [
            (["callbacks": []], "Failed to parse JWT, the authId is missing"),
            (["authId": 7], "Failed to parse JWT, malformed"), (["authId": .null], "Failed to parse JWT, malformed"),
        ]
        for (body, message) in faults {
            let error = #expect(throws: EngineError.self) { try PageAnswer(body, bytes: []) }
            #expect(error.map(AMError.init) == AMError(400, message))
        }
    }

    private static let count = "Incorrect number of callbacks found in JSON response"
    private static let missing = "Required callback not found in JSON response"
    private static let notText = "IDToken2 must be a text of at most 4096 bytes without NUL."

    private static func callback(_ type: JSONValue, _ input: JSONValue?) -> JSONValue {
        var object: JSONObject = ["type": type]
        object["input"] = input
        return .object(object)
    }

    private static func input(_ name: JSONValue?, _ value: JSONValue?) -> JSONValue {
        var object = JSONObject()
        object["name"] = name
        object["value"] = value
        return [.object(object)]
    }

    private static let name = callback("NameCallback", input("IDToken1", "ana"))
    private static let password = callback("PasswordCallback", input("IDToken2", "p"))

    static let wrong: [(JSONValue?, String)] = [
        (nil, count), (.null, count), ("x", count), ([], count), ([name], count), ([name, password, name], count),
        ([password, name], missing), ([name, name], missing), ([name, nil], missing), ([name, 7], missing),
        ([name, callback("PasswordCallback", nil)], missing), ([name, callback("PasswordCallback", [])], missing),
        ([name, callback("passwordcallback", input("IDToken2", "x"))], missing),
        ([name, callback("PasswordCallback", input("IDToken1", "x"))], missing),
        ([name, callback("PasswordCallback", input("IDToken02", "x"))], missing),
        ([name, callback("PasswordCallback", input("idtoken2", "x"))], missing),
        ([name, callback("PasswordCallback", input("IDToken2 ", "x"))], missing),
        ([name, callback("PasswordCallback", input(7, "x"))], missing),
        ([name, callback("PasswordCallback", input(.null, "x"))], missing),
        ([name, callback("PasswordCallback", input("IDToken2", nil))], notText),
        ([name, callback("PasswordCallback", input(nil, nil))], notText),
        ([name, callback("PasswordCallback", input("IDToken2", 7))], notText),
        ([name, callback("PasswordCallback", input("IDToken2", "a\u{0}b"))], notText),
        (
            [name, callback("PasswordCallback", input("IDToken2", .string(String(repeating: "x", count: 4097))))],
            notText
        ),
    ]

    private func responses(
        _ callbacks: JSONValue?, to asked: [CallbackPrompt]
    ) throws -> [CallbackResponse] {
        var body: JSONObject = ["authId": "x"]
        body["callbacks"] = callbacks
        let answer = try #require(try PageAnswer(body, bytes: []))
        return try CallbackMatching(asked: asked).responses(in: answer.callbacks)
    }

    @Test("Callbacks that do not fit the page are refused in AM's words", arguments: wrong.indices)
    func wrongCallbacks(index: Int) {
        let (callbacks, message) = Self.wrong[index]
        let error = #expect(throws: EngineError.self) {
            try responses(callbacks, to: [.name("N"), .password("P")])
        }
        #expect(error.map(AMError.init) == AMError(400, message))
    }

    @Test("Callbacks that fit are read, with names or without, choices as a number or its text")
    func rightCallbacks() throws {
        let asked: [CallbackPrompt] = [.textOutput("x"), .name("N"), .choice("C", choices: ["a", "b"], default: 0)]
        let shown = Self.callback("TextOutputCallback", nil)
        let named = Self.callback("NameCallback", Self.input("IDToken2", "ana"))
        for (name, value) in [("IDToken3", 1), ("IDToken3", "1"), (nil, 1)] as [(JSONValue?, JSONValue)] {
            let choice = Self.callback("ChoiceCallback", Self.input(name, value))
            for callbacks in [[shown, named, choice], [named, choice]] {
                #expect(
                    try responses(.array(callbacks), to: asked).map(\.values) == [[], ["ana"], ["1"]])
            }
        }
    }

    @Test("A name of a value is read as it is written, and in no other way")
    func names() {
        for (text, name) in [
            ("IDToken1", InputName(place: 1)), ("IDToken12jws", InputName(place: 12, part: "jws")),
            ("IDToken0", InputName(place: 0)), ("IDToken", InputName(place: 0)), ("IDToken01", InputName(place: 0)),
            ("IDToken+1", InputName(place: 0)), ("IDToken99999999999999999999", InputName(place: 0)),
            ("", InputName(place: 0)), ("IDToken١", InputName(place: 0)),
        ] {
            #expect(InputName(text: text) == name, "\(text)")
        }
    }
}
