import AssentCore
import AssentJourney
import AssentTesting
import HTTPTypes
import Testing

/// AM's wire in payloads that this project has written itself by what is known of it, so that a bare clone holds it,
/// too. What other people have recorded is compared where `ASSENT_FIXTURES` names it.
@Suite("AM's wire, in payloads of our own")
struct WirePayloadTests {
    private static let step = """
        {"authId": "eyJ0eXAi.payload.signature", "stage": "Stage1", "header": "Welcome", "description": "Sign in here",
         "future": {"kept": [1, 2.50, null]},
         "callbacks": [
          {"type": "NameCallback", "output": [{"name": "prompt", "value": "Who are you?"}],
           "input": [{"name": "IDToken1", "value": ""}], "_id": 0},
          {"type": "PasswordCallback", "output": [{"name": "prompt", "value": "And the word?"}],
           "input": [{"name": "IDToken2", "value": ""}], "_id": 1},
          {"type": "ChoiceCallback", "output": [{"name": "prompt", "value": "Which account?"},
            {"name": "choices", "value": ["Current", "Savings"]}, {"name": "defaultChoice", "value": 1}],
           "input": [{"name": "IDToken3", "value": 1}], "_id": 2},
          {"type": "ConfirmationCallback", "output": [{"name": "prompt", "value": ""}, {"name": "messageType", "value": 0},
            {"name": "options", "value": ["Approve", "Decline"]}, {"name": "optionType", "value": -1},
            {"name": "defaultOption", "value": 0}], "input": [{"name": "IDToken4", "value": 100}], "_id": 3},
          {"type": "TextInputCallback", "output": [{"name": "prompt", "value": "Code"}, {"name": "defaultText", "value": "000"}],
           "input": [{"name": "IDToken5", "value": ""}], "_id": 4},
          {"type": "TextOutputCallback", "output": [{"name": "message", "value": "Maintenance at ten"},
            {"name": "messageType", "value": "1"}]},
          {"type": "TextOutputCallback", "output": [{"name": "message", "value": "window.alert(1)"},
            {"name": "messageType", "value": "4"}]},
          {"type": "HiddenValueCallback", "output": [{"name": "value", "value": "false"}, {"name": "id", "value": "outcome"}],
           "input": [{"name": "IDToken8", "value": "outcome"}]},
          {"type": "PollingWaitCallback", "output": [{"name": "waitTime", "value": "5000"}, {"name": "message", "value": "Wait"}]},
          {"type": "MetadataCallback", "output": [{"name": "data", "value": {"_type": "WebAuthn", "timeout": "60000"}}]},
          {"type": "KbaCreateCallback", "output": [{"name": "prompt", "value": "A question"},
            {"name": "predefinedQuestions", "value": ["Colour?"]}],
           "input": [{"name": "IDToken11question", "value": ""}, {"name": "IDToken11answer", "value": ""}]}
         ]}
        """

    private func client(_ replies: [(Int, String)]) throws -> (JourneyClient, InMemoryTransport) {
        let transport = script(
            replies.map { HTTPReply(HTTPResponse(status: .init(code: $0.0)), body: HTTPBody($0.1)) })
        return (try AssentJourneyTests.client(transport), transport)
    }

    @Test("A step is read as AM means it, and goes back with every callback and every member that it had")
    func wholeStep() async throws {
        let success = #"{"tokenId": "AQIC5w", "successUrl": "/enduser/?realm=/alpha", "realm": "/alpha"}"#
        let (client, transport) = try client([(200, Self.step), (200, success)])
        let node = await client.start("Login")
        var step = try #require(node.step)
        #expect(step.stage == "Stage1" && step.header == "Welcome" && step.description == "Sign in here")
        #expect(step.callbacks.count == 11)
        #expect(step[NameCallback.self]?.prompt == "Who are you?")
        #expect(step[ChoiceCallback.self]?.choices == ["Current", "Savings"])
        #expect(step[ConfirmationCallback.self]?.options.map(\.title) == ["Approve", "Decline"])
        #expect(step[TextOutputCallback.self, at: 1]?.kind == .script)
        #expect(step[HiddenValueCallback.self]?.id == "outcome")
        #expect(step[PollingWaitCallback.self]?.waitTime == 5000)
        #expect(step[MetadataCallback.self]?.data["_type"] == "WebAuthn")
        step[NameCallback.self]?.name = "ana"
        step[PasswordCallback.self]?.password = "correct horse"
        let session = await client.next(step).session
        #expect(session?.token == Secret("AQIC5w") && session?.successURL == "/enduser/?realm=/alpha")

        let sent = try #require(transport.exchanges.last?.json)
        let original = try JSONValue.parse(Self.step)
        #expect(sent["authId"] == original["authId"] && sent["future"] == original["future"])
        #expect(sent["stage"] == "Stage1")
        let (before, after) = (original["callbacks"]?.array ?? [], sent["callbacks"]?.array ?? [])
        #expect(after.map { $0["type"] } == before.map { $0["type"] })
        #expect(after.map { $0["output"] } == before.map { $0["output"] })
        #expect(after[0]["input"] == [["name": "IDToken1", "value": "ana"]])
        #expect(after[1]["input"] == [["name": "IDToken2", "value": "correct horse"]])
        #expect(after[5]["input"] == nil && after[10]["input"] == before[10]["input"])
    }

    @Test(
        "A realm's path on the wire",
        arguments: [
            ("", "realms/root"), ("root", "realms/root"), ("alpha", "realms/root/realms/alpha"),
            ("/a/b/", "realms/root/realms/a/realms/b"),
        ])
    func realms(realm: String, path: String) throws {
        #expect(try JourneyRealm(realm).path == path)
    }

    @Test(
        "A refusal has its reason, and keeps the whole body",
        arguments: [
            (
                401,
                #"{"code":401,"reason":"Unauthorized","message":"Session has timed out","detail":{"errorCode":"110"}}"#,
                JourneyError.Code.sessionTimedOut
            ),
            (
                400, #"{"code":400,"reason":"Bad Request","message":"Authentication Error: Authentication timeout."}"#,
                .sessionTimedOut
            ),
            (401, #"{"code":401,"reason":"Unauthorized","message":"Login failure"}"#, .invalidCredentials),
            (
                400,
                #"{"code":400,"reason":"Bad Request","message":"Incorrect number of callbacks found in JSON response"}"#,
                .callbackMismatch
            ),
            (
                401, #"{"code":401,"reason":"Unauthorized","message":"no","detail":{"errorCode":128,"x":[1]}}"#,
                .transactionUnknown
            ),
            (500, #"{"error":"server_error","message":"Internal server error"}"#, .other),
        ])
    func refusals(status: Int, body: String, reason: JourneyError.Code) async throws {
        let (client, _) = try client([(status, body)])
        let node = await client.start("Login")
        let error = try #require(node.error)
        #expect(error.code == reason && error.status == status)
        #expect(JSONValue.object(error.body) == (try JSONValue.parse(body)))
    }
}
