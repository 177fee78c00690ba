import AssentCore
import AssentJourney
import AssentTesting
import Testing

@Suite struct CallbackTests {
    private func reply(_ step: JourneyStep, _ index: Int = 0, input: Int = 0) -> JSONValue? {
        let inputs = step.reply["callbacks"]?.array?[index]["input"]?.array
        return inputs?[input]["value"]
    }

    @Test(
        "Typed answers land in their inputs",
        arguments: ["", "Ana", "  ", "אבג 😀", String(repeating: "x", count: 5000)])
    func typed(text: String) async throws {
        var step = try await firstStep([
            name, password, callback("TextInputCallback", ["prompt": "Code"], input: ""),
            callback("HiddenValueCallback", ["value": "v", "id": "h"], input: "h"),
        ])
        #expect(step.unanswered == ["User Name", "Password", "Code"])
        step[NameCallback.self]?.name = "first"
        step[NameCallback.self]?.name = text
        step[PasswordCallback.self]?.password = text
        step[TextInputCallback.self]?.text = text
        step[HiddenValueCallback.self]?.value = text
        #expect(step.unanswered.isEmpty)
        for index in 0..<4 { #expect(reply(step, index) == .string(text)) }
    }

    /// A callback for something new. Its second input asks for a check alone.
    private func new(_ type: String, _ outputs: KeyValuePairs<String, JSONValue>) -> JSONValue {
        guard var made = callback(type, outputs).object else { return .null }
        made["input"] = [["name": "IDToken1", "value": ""], ["name": "IDToken1validateOnly", "value": false]]
        return .object(made)
    }

    @Test("Name and password of a new account must be answered, and say which rules the ones before did not meet")
    func newAccount() async throws {
        var step = try await firstStep([
            new(
                "ValidatedCreateUsernameCallback",
                ["prompt": "Username", "failedPolicies": [#"{"policyRequirement":"UNIQUE"}"#, "no JSON"]]),
            new("ValidatedCreatePasswordCallback", ["prompt": "Password", "echoOn": true]),
        ])
        #expect(step.unanswered == ["Username", "Password"])
        #expect(step[ValidatedCreateUsernameCallback.self]?.failedPolicies == ["UNIQUE"])
        #expect(step[ValidatedCreatePasswordCallback.self]?.failedPolicies == [])
        #expect(step[ValidatedCreatePasswordCallback.self]?.isShown == true)
        step[ValidatedCreateUsernameCallback.self]?.name = "ana"
        step[ValidatedCreatePasswordCallback.self]?.set(Secret("correct horse"))
        #expect(step.unanswered.isEmpty)
        #expect(reply(step) == "ana" && reply(step, 1) == "correct horse")
        for index in 0..<2 { #expect(reply(step, index, input: 1) == false) }
    }

    @Test("What else a new account has is answered in the inputs of AM, as text and as truth values")
    func registration() async throws {
        var security = try #require(callback("KbaCreateCallback", ["predefinedQuestions": ["Colour?"]]).object)
        security["input"] = [["name": "IDToken5question", "value": ""], ["name": "IDToken5answer", "value": ""]]
        var step = try await firstStep([
            new("StringAttributeInputCallback", ["name": "mail", "prompt": "Mail", "required": true, "value": ""]),
            new("StringAttributeInputCallback", ["name": "sn", "prompt": "Name", "required": true, "value": "Ash"]),
            new("BooleanAttributeInputCallback", ["name": "news", "prompt": "News", "required": true, "value": nil]),
            callback("TermsAndConditionsCallback", ["version": "2", "terms": "Be kind."], input: false),
            .object(security),
        ])
        #expect(step.unanswered == ["Mail", "News", "TermsAndConditionsCallback", "KbaCreateCallback"])
        #expect(step[StringAttributeInputCallback.self, at: 1]?.value == "Ash")
        #expect(step[StringAttributeInputCallback.self]?.attribute == "mail")
        #expect(step[TermsAndConditionsCallback.self]?.terms == "Be kind.")
        #expect(step[KbaCreateCallback.self]?.questions == ["Colour?"])
        #expect(step[KbaCreateCallback.self]?.allowsOwnQuestion == true)
        step[StringAttributeInputCallback.self]?.value = "ana@bank.example"
        step[BooleanAttributeInputCallback.self]?.value = false
        step[TermsAndConditionsCallback.self]?.isAccepted = true
        step[KbaCreateCallback.self]?.question = "Colour?"
        #expect(step.unanswered == ["KbaCreateCallback"])
        step[KbaCreateCallback.self]?.answer = "blue"
        #expect(step.unanswered.isEmpty)
        #expect(reply(step) == "ana@bank.example" && reply(step, 2) == false && reply(step, 3) == true)
        #expect(reply(step, 4) == "Colour?" && reply(step, 4, input: 1) == "blue")
        // What was not set goes back as it came.
        #expect(reply(step, 1) == "")
    }

    @Test("A number about the user goes back as a number, whole ones without a fraction; NaN answers nothing")
    func numbers() async throws {
        var step = try await firstStep([
            new("NumberAttributeInputCallback", ["name": "limit", "prompt": "Limit", "required": true, "value": nil]),
            new("NumberAttributeInputCallback", ["prompt": "Share", "required": true, "value": "12.5"]),
            new("NumberAttributeInputCallback", ["prompt": "Pets", "required": false, "value": nil]),
            new("NumberAttributeInputCallback", ["prompt": "Odd", "required": true, "value": "nan"]),
        ])
        #expect(step.unanswered == ["Limit", "Odd"])
        #expect(step[NumberAttributeInputCallback.self]?.attribute == "limit")
        #expect(step[NumberAttributeInputCallback.self]?.value == nil)
        #expect(step[NumberAttributeInputCallback.self, at: 1]?.value == 12.5)
        for value in [Double.nan, .infinity] {
            step[NumberAttributeInputCallback.self]?.value = value
            #expect(step.unanswered == ["Limit", "Odd"])
        }
        let numbers: [(value: Double, text: String)] = [(40, "40"), (-0.25, "-0.25"), (1e20, "1e+20"), (0, "0")]
        for number in numbers {
            step[NumberAttributeInputCallback.self]?.value = number.value
            #expect(step[NumberAttributeInputCallback.self]?.value == number.value)
            #expect(reply(step)?.number?.description == number.text)
        }
        step[NumberAttributeInputCallback.self, at: 3]?.value = 3
        #expect(step.unanswered.isEmpty)
        // What was not set goes back as it came, and so does the wish for a check alone.
        #expect(reply(step, 1) == "" && reply(step, 2) == "" && reply(step, input: 1) == false)
    }

    @Test("What would be passed on is shown, and the user says yes or no to each")
    func consents() async throws {
        var step = try await firstStep([
            callback(
                "ConsentMappingCallback",
                [
                    "name": "managedUser_shop", "displayName": "Shop of Example", "icon": "", "accessLevel": "Profile",
                    "isRequired": true, "fields": ["mail", "givenName"], "message": "The shop wants to know you.",
                ], input: false),
            callback("ConsentMappingCallback", ["name": "managedUser_news"], input: false),
        ])
        #expect(step.unanswered == ["Shop of Example", "managedUser_news"])
        #expect(step[ConsentMappingCallback.self]?.attributes == ["mail", "givenName"])
        #expect(step[ConsentMappingCallback.self]?.message == "The shop wants to know you.")
        #expect(step[ConsentMappingCallback.self]?.accessLevel == "Profile")
        #expect(step[ConsentMappingCallback.self]?.isRequired == true)
        #expect(step[ConsentMappingCallback.self, at: 1]?.isRequired == false)
        step[ConsentMappingCallback.self]?.isAccepted = true
        step[ConsentMappingCallback.self, at: 1]?.isAccepted = false
        #expect(step.unanswered.isEmpty)
        #expect(reply(step) == true && reply(step, 1) == false)
    }

    @Test("Who signs the user in is picked by name: the server itself, or another provider")
    func providers() async throws {
        let offered: JSONValue = [
            ["provider": "google", "uiConfig": ["buttonDisplayName": "Google"]], ["provider": "localAuthentication"],
            ["uiConfig": [:]], "odd",
        ]
        var step = try await firstStep([callback("SelectIdPCallback", ["providers": offered, "value": ""], input: "")])
        #expect(step.unanswered == ["SelectIdPCallback"])
        let providers = try #require(step[SelectIdPCallback.self]?.providers)
        #expect(providers.map(\.name) == ["google", "localAuthentication"])
        #expect(providers.map(\.title) == ["Google", "localAuthentication"])
        #expect(providers.map(\.isLocal) == [false, true])
        step[SelectIdPCallback.self]?.selected = "localAuthentication"
        #expect(step.unanswered.isEmpty)
        #expect(reply(step) == "localAuthentication")
    }

    @Test("The vendor's page for a new account names what it asks", .enabled(if: fixtures != nil))
    func recordedRegistration() async throws {
        let callbacks = try #require(try fixture("js/mockapi-registration.json")["callbacks"]?.array)
        let step = try await firstStep(callbacks)
        let question = "Select a security question"
        #expect(
            step.unanswered == [
                "Username", "First Name", "Last Name", "Email Address", "Password", question, question,
                "TermsAndConditionsCallback",
            ])
        #expect(step.reply["callbacks"] == .array(callbacks))
    }

    @Test("What was not answered goes back as it came")
    func untouched() async throws {
        let callbacks = [
            name, callback("ChoiceCallback", ["choices": ["a", "b"], "defaultChoice": 1], input: 1),
            callback("ConfirmationCallback", ["options": ["a"]], input: 100),
            callback("HiddenValueCallback", ["value": "v", "id": "h"], input: "h"),
        ]
        let step = try await firstStep(callbacks)
        #expect(step.reply["callbacks"] == .array(callbacks))
    }

    @Test("Two callbacks of one type are told apart by their place")
    func second() async throws {
        let text = callback("TextInputCallback", ["prompt": "?"], input: "")
        var step = try await firstStep([text, name, text])
        step[TextInputCallback.self, at: 1]?.text = "two"
        step[TextInputCallback.self, at: 2]?.text = "none"
        step[TextInputCallback.self, at: -1]?.text = "none"
        #expect(reply(step, 0) == "" && reply(step, 2) == "two")
        step[TextInputCallback.self, at: 1] = nil
        #expect(reply(step, 2) == "" && step.callbacks.count == 3)
    }

    @Test("A callback from elsewhere cannot be put into a step")
    func foreign() async throws {
        var step = try await firstStep([name])
        var other = try #require(
            try await firstStep([callback("NameCallback", ["prompt": "Other"], input: "")])[NameCallback.self])
        other.name = "x"
        step[NameCallback.self] = other
        step.callbacks = [other, other]
        #expect(reply(step) == "" && step.callbacks.count == 1)
    }

    @Test("A proposed text is an answer, a proposed choice is not")
    func defaults() async throws {
        var step = try await firstStep([
            callback("TextInputCallback", ["defaultText": "d"], input: ""),
            callback("ChoiceCallback", ["prompt": "Pick", "choices": ["a", "b"], "defaultChoice": 1], input: 1),
        ])
        #expect(step[TextInputCallback.self]?.text == "d")
        #expect(reply(step) == "d")
        #expect(step[ChoiceCallback.self]?.selectedIndex == 1)
        #expect(step.unanswered == ["Pick"])
        step[ChoiceCallback.self]?.selectedIndex = 0
        #expect(reply(step, 1) == 0)
    }

    @Test(
        "The usual sets of buttons have their numbers",
        arguments: [
            (0, ["Yes": 0, "No": 1]), (1, ["Yes": 0, "No": 1, "Cancel": 2]), (2, ["OK": 3, "Cancel": 2]), (-1, [:]),
            (99, [:]),
        ])
    func buttons(type: Int, expected: [String: Int]) async throws {
        let step = try await firstStep([
            callback("ConfirmationCallback", ["optionType": .integer(type), "defaultOption": -1], input: 100)
        ])
        let confirmation = try #require(step[ConfirmationCallback.self])
        #expect(Dictionary(uniqueKeysWithValues: confirmation.options.map { ($0.title, $0.value) }) == expected)
        #expect(confirmation.defaultOption == nil)
    }

    @Test(
        "A text's kind is read from a text or a number",
        arguments: [
            ("0", .information), (0, .information), ("1", .warning), ("2", .error), ("4", .script), (4, .script),
            ("3", .other(3)), ("-1", .other(-1)), ("", .other(-1)), ("12.5", .other(-1)),
            (.number(JSONNumber(1.5) ?? JSONNumber(9)), .other(-1)),
            ([:], .other(-1)), ("99999999999999999999", .other(-1)),
        ] as [(JSONValue, TextKind)])
    func kinds(value: JSONValue, kind: TextKind) async throws {
        let step = try await firstStep([callback("TextOutputCallback", ["message": "m", "messageType": value])])
        #expect(step[TextOutputCallback.self]?.kind == kind)
    }

    @Test(
        "A wait is read in digits only",
        arguments: [("0", 0), ("8000", 8000), (8000, 8000), ("", 0), ("1000ms", 0), ("12.5", 0), ("-5", 0), (nil, 0)]
            as [(JSONValue, Int)])
    func wait(value: JSONValue, expected: Int) async throws {
        let step = try await firstStep([callback("PollingWaitCallback", ["waitTime": value])])
        #expect(step[PollingWaitCallback.self]?.waitTime == expected)
    }

    @Test("Outputs of the wrong type give neutral values and never trap")
    func wrongTypes() async throws {
        let odd: [JSONValue] = [1, true, nil, [], [:], [1], "x", .number(JSONNumber(-1))]
        for value in odd {
            for type in [
                "NameCallback", "ChoiceCallback", "ConfirmationCallback", "TextOutputCallback", "HiddenValueCallback",
                "PollingWaitCallback", "MetadataCallback", "TextInputCallback", "ValidatedCreateUsernameCallback",
                "ValidatedCreatePasswordCallback", "StringAttributeInputCallback", "BooleanAttributeInputCallback",
                "TermsAndConditionsCallback", "KbaCreateCallback", "NumberAttributeInputCallback",
                "ConsentMappingCallback", "SelectIdPCallback",
            ] {
                var broken: JSONObject = JSONObject([.init(name: "type", value: .string(type))])
                broken["output"] = value
                broken["input"] = value
                let names = [
                    "prompt", "choices", "options", "data", "waitTime", "id", "optionType", "defaultChoice",
                    "failedPolicies", "echoOn", "value", "required", "predefinedQuestions", "providers", "isRequired",
                    "fields",
                ]
                var outputs = broken
                outputs["output"] = .array(names.map { ["name": .string($0), "value": value] } + [value])
                let step = try await firstStep([.object(broken), .object(outputs)])
                for callback in step.callbacks { _ = (callback.prompt, callback.answers, callback.needsAnswer) }
                #expect(step.reply["callbacks"] == [.object(broken), .object(outputs)])
            }
        }
    }

    @Test("An app may teach the client another type of callback")
    func custom() async throws {
        struct Language: JourneyCallback {
            static let type = "LanguageCallback"
            let fields: CallbackFields
            var country = "CH"
            init(_ fields: CallbackFields) { self.fields = fields }
            var answers: [CallbackAnswer?] { [nil, .text(Secret(country))] }
        }
        let wire: JSONValue = [
            "type": "LanguageCallback",
            "input": [["name": "IDToken1Language", "value": "de"], ["name": "IDToken1Country", "value": ""]],
        ]
        var configuration = try JourneyConfiguration(server: am)
        configuration.callbacks = .all.adding(Language.self)
        let client = JourneyClient(configuration: configuration, transport: script([step([wire])]))
        let step = try #require(await client.start().step)
        #expect(step[Language.self] != nil)
        #expect(reply(step, input: 0) == "de" && reply(step, input: 1) == "CH")
    }

    @Test("An unknown callback may be answered by hand, within its inputs")
    func unknown() async throws {
        var step = try await firstStep([callback("Future", input: 1)])
        step[UnknownCallback.self]?.answer(.truth(true), at: 5)
        step[UnknownCallback.self]?.answer(.truth(true), at: -1)
        #expect(reply(step) == 1)
        step[UnknownCallback.self]?.answer(.truth(true))
        #expect(reply(step) == true)
    }

    @Test("Recorded callbacks are read and go back as they came", .enabled(if: fixtures != nil))
    func recorded() async throws {
        let files = [
            "Choice", "Confirmation", "TextInput", "TextOutput-info", "TextOutput-script4", "HiddenValue",
            "PollingWait",
            "SuspendedTextOutput", "ValidatedCreateUsername-failedPolicies", "ValidatedCreatePassword", "KbaCreate",
            "IdP", "DeviceBinding", "ReCaptcha", "Redirect", "TermsAndConditions", "SelectIdP",
        ]
        let callbacks =
            try files.map { try fixture("ping/callback-\($0).json") } + [fixture("ping/metadata-generic.json")]
        let step = try await firstStep(callbacks)
        #expect(step[ChoiceCallback.self]?.choices == ["Option 1", "Option 2", "Option 3"])
        #expect(step[ConfirmationCallback.self]?.options.map(\.title) == ["Yes", "No"])
        #expect(step[TextInputCallback.self]?.prompt == "One Time Pin")
        #expect(step[TextOutputCallback.self, at: 1]?.kind == .script)
        #expect(step[HiddenValueCallback.self]?.id == "webAuthnOutcome")
        #expect(step[PollingWaitCallback.self]?.waitTime == 8000)
        #expect(step[MetadataCallback.self]?.data["_type"] == "WebAuthn")
        #expect(step[ValidatedCreateUsernameCallback.self]?.failedPolicies == ["MIN_LENGTH"])
        #expect(step[ValidatedCreatePasswordCallback.self]?.prompt == "Password")
        #expect(step[SelectIdPCallback.self]?.providers.map(\.title) == ["Google"])
        var expected = callbacks
        expected[2] = CallbackFields(try #require(callbacks[2].object), position: 2).withDefaultText
        #expect(step.reply["callbacks"] == .array(expected))
    }

    @Test("No answer shows in any description, mirror or dump")
    func secrecy() async throws {
        var step = try await firstStep([
            name, password, callback("TextInputCallback", [:], input: ""),
            callback("HiddenValueCallback", ["id": "h"], input: "pr3filled"), callback("Future", input: ""),
            new("ValidatedCreatePasswordCallback", [:]), new("KbaCreateCallback", [:]),
            new("StringAttributeInputCallback", ["value": "pr3filled"]), new("NumberAttributeInputCallback", [:]),
        ])
        step[NameCallback.self]?.name = "hunter2"
        step[PasswordCallback.self]?.password = "hunter2"
        step[TextInputCallback.self]?.text = "hunter2"
        step[HiddenValueCallback.self]?.value = "hunter2"
        step[UnknownCallback.self]?.answer(.text(Secret("hunter2")))
        step[ValidatedCreatePasswordCallback.self]?.password = "hunter2"
        step[KbaCreateCallback.self]?.answer = "hunter2"
        step[StringAttributeInputCallback.self]?.value = "hunter2"
        step[NumberAttributeInputCallback.self]?.value = 470_811
        var shown = "\(step) \(step.debugDescription) \(step.callbacks) \(JourneyNode.continue(step))"
        dump(step, to: &shown)
        dump(JourneyNode.continue(step), to: &shown)
        for callback in step.callbacks { dump(callback, to: &shown) }
        for callback in step.callbacks { dump(callback.fields, to: &shown); dump(callback.answers, to: &shown) }
        for secret in ["hunter2", "pr3filled", "470811", "A1"] { #expect(!shown.contains(secret)) }
    }
}

extension CallbackFields {
    fileprivate var withDefaultText: JSONValue { filled(with: [.text(Secret(text("defaultText")))]) }
}
