import Assent
import AssentCore
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI

@Suite("A journey's questions at the terminal")
struct TerminalAnswersTests {
    /// Asks one page, and keeps what comes back.
    private struct Server: HTTPTransport {
        let page: JSONValue
        let answers = Locked<[JSONValue]>([])

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let body = try await call.body?.collect(upTo: 1 << 20) ?? []
            answers.withLock { $0.append((try? JSONValue.parse(body)) ?? .null) }
            return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(page.serializedBytes()))
        }
    }

    /// What goes back for a callback when `typed` is typed.
    private func answer(_ callback: JSONValue, typing typed: String) async throws -> JSONValue? {
        let server = Server(page: ["authId": "a", "callbacks": [callback]])
        let client = JourneyClient(
            configuration: try JourneyConfiguration(server: "https://am.example/am"), transport: server)
        guard case .continue(var step) = await client.start("Login") else { return nil }
        let pipe = Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: Data(typed.utf8))
        try pipe.fileHandleForWriting.close()
        let input = TerminalInput(descriptor: pipe.fileHandleForReading.fileDescriptor)
        _ = try TerminalAnswers(console: Console(silent: true), prompt: Prompt(input: input)).answer(&step)
        _ = await client.next(step)
        return server.answers.withLock { $0.last }?["callbacks"]?.array?.first
    }

    /// What goes back in the callback's first input.
    private func first(_ callback: JSONValue, typing typed: String) async throws -> JSONValue? {
        try await answer(callback, typing: typed)?["input"]?.array?.first?["value"]
    }

    @Test("A callback of a kind that is not known here is asked by its prompt where it takes one text")
    func unknown() async throws {
        let asked: JSONValue = [
            "type": "ColourCallback", "output": [["name": "prompt", "value": "Which colour?"]],
            "input": [["name": "IDToken1", "value": ""]],
        ]
        let answered = try await answer(asked, typing: "green\n")
        #expect(answered?["input"]?.array?.first?["value"] == "green")
        #expect(answered?["type"] == "ColourCallback")
    }

    @Test("Name and password of a new account are asked, the password twice until both are the same")
    func newAccount() async throws {
        func asked(_ type: String) -> JSONValue {
            [
                "type": .string(type), "output": [["name": "prompt", "value": "Which?"]],
                "input": [["name": "IDToken1", "value": ""], ["name": "IDToken1validateOnly", "value": false]],
            ]
        }
        let name = try await answer(asked("ValidatedCreateUsernameCallback"), typing: "ana\n")
        #expect(name?["input"]?.array?.first?["value"] == "ana")
        #expect(name?["input"]?.array?.last?["value"] == false)
        let password = asked("ValidatedCreatePasswordCallback")
        let chosen = try await answer(password, typing: "correct hoarse\ncorrect horse\none two\none two\n")
        #expect(chosen?["input"]?.array?.first?["value"] == "one two")
        await #expect(throws: CommandFailure.self) {
            try await answer(password, typing: "a\nb\nc\nd\ne\nf\n")
        }
    }

    @Test("An attribute that the server has is kept by an empty line, and a question of one's own has its answer")
    func attributes() async throws {
        func asked(_ type: String, _ value: JSONValue) -> JSONValue {
            [
                "type": .string(type),
                "output": [["name": "prompt", "value": "Which?"], ["name": "value", "value": value]],
                "input": [["name": "IDToken1", "value": value], ["name": "IDToken1validateOnly", "value": false]],
            ]
        }
        #expect(try await first(asked("StringAttributeInputCallback", "Ana"), typing: "\n") == "Ana")
        #expect(try await first(asked("StringAttributeInputCallback", "Ana"), typing: "Bea\n") == "Bea")
        #expect(try await first(asked("BooleanAttributeInputCallback", true), typing: "2\n") == false)
        let security: JSONValue = [
            "type": "KbaCreateCallback", "output": [["name": "predefinedQuestions", "value": ["Colour?"]]],
            "input": [["name": "IDToken1question", "value": ""], ["name": "IDToken1answer", "value": ""]],
        ]
        let inputs = try await answer(security, typing: "2\nWhose cat?\nmine\n")?["input"]?.array ?? []
        #expect(inputs.compactMap { $0["value"]?.string } == ["Whose cat?", "mine"])
    }

    @Test("A number is asked until one is typed, an empty line keeps the one that the server has")
    func numbers() async throws {
        func asked(_ value: JSONValue, isRequired: Bool = true) -> JSONValue {
            [
                "type": "NumberAttributeInputCallback",
                "output": [
                    ["name": "prompt", "value": "How many?"], ["name": "required", "value": .bool(isRequired)],
                    ["name": "value", "value": value],
                ],
                "input": [["name": "IDToken1", "value": value], ["name": "IDToken1validateOnly", "value": false]],
            ]
        }
        #expect(try await first(asked(nil), typing: "many\n\n 3 \n") == 3)
        #expect(try await first(asked(12), typing: "\n") == 12)
        #expect(try await first(asked(12), typing: "4\n") == 4)
        #expect(try await first(asked(nil, isRequired: false), typing: "\n") == JSONValue.null)
        await #expect(throws: CommandFailure.self) { try await first(asked(nil), typing: "a\nb\nnan\n") }
    }

    @Test("What is passed on is agreed to or not; the command ends where it must be agreed to")
    func consents() async throws {
        func asked(isRequired: Bool) -> JSONValue {
            [
                "type": "ConsentMappingCallback",
                "output": [
                    ["name": "displayName", "value": "Shop"], ["name": "isRequired", "value": .bool(isRequired)],
                    ["name": "fields", "value": ["mail"]], ["name": "message", "value": "It wants to know you."],
                ],
                "input": [["name": "IDToken1", "value": false]],
            ]
        }
        #expect(try await first(asked(isRequired: true), typing: "1\n") == true)
        #expect(try await first(asked(isRequired: false), typing: "2\n") == false)
        await #expect(throws: CommandFailure.self) { try await first(asked(isRequired: true), typing: "2\n") }
    }

    @Test("Of those who can sign the user in, the server itself is taken; the command ends where it is not among them")
    func providers() async throws {
        func asked(_ providers: JSONValue) -> JSONValue {
            [
                "type": "SelectIdPCallback", "output": [["name": "providers", "value": providers]],
                "input": [["name": "IDToken1", "value": ""]],
            ]
        }
        let both: JSONValue = [["provider": "google"], ["provider": "localAuthentication"]]
        #expect(try await first(asked(both), typing: "") == "localAuthentication")
        let failure = await #expect(throws: CommandFailure.self) {
            try await answer(asked([["provider": "google"]]), typing: "")
        }
        #expect(failure?.description.contains("google") == true)
        #expect(failure?.description.contains("--browser") == true)
    }

    @Test("A name that was given beforehand ends the command when it breaks a rule, and not when another answer does")
    func givenBeforehand() async throws {
        let types = ["ValidatedCreateUsernameCallback", "StringAttributeInputCallback"]
        for failing in types {
            let callbacks = types.map { type -> JSONValue in
                let failed: JSONValue = type == failing ? [#"{"policyRequirement":"A\\B"}"#] : []
                return [
                    "type": .string(type),
                    "output": [["name": "prompt", "value": "Which?"], ["name": "failedPolicies", "value": failed]],
                    "input": [["name": "IDToken1", "value": ""], ["name": "IDToken1validateOnly", "value": false]],
                ]
            }
            let client = JourneyClient(
                configuration: try JourneyConfiguration(server: "https://am.example/am"),
                transport: Server(page: ["authId": "a", "callbacks": .array(callbacks)]))
            let pipe = Pipe()
            defer { withExtendedLifetime(pipe) {} }
            try pipe.fileHandleForWriting.write(contentsOf: Data("ana@example\nana@bank.example\n".utf8))
            try pipe.fileHandleForWriting.close()
            let input = TerminalInput(descriptor: pipe.fileHandleForReading.fileDescriptor)
            var answers = TerminalAnswers(console: Console(silent: true), prompt: Prompt(input: input))
            answers.username = "ana"
            guard case .continue(var first) = await client.start("Login") else {
                Issue.record("no step")
                return
            }
            _ = try answers.answer(&first)
            guard case .continue(var again) = await client.next(first) else {
                Issue.record("no second step")
                return
            }
            var failure: CommandFailure?
            do {
                _ = try answers.answer(&again)
            } catch let error as CommandFailure {
                failure = error
            }
            #expect((failure != nil) == (failing == types[0]))
            // It is escaped where it is shown, and so not here as well.
            #expect(failure?.description.hasSuffix(#"requirement A\B."#) ?? true)
            #expect(failure != nil || again[StringAttributeInputCallback.self]?.value == "ana@bank.example")
        }
    }

    @Test("Terms are accepted, or the command ends: a server would ask for them again and again")
    func terms() async throws {
        let terms: JSONValue = [
            "type": "TermsAndConditionsCallback", "output": [["name": "terms", "value": "Be kind."]],
            "input": [["name": "IDToken1", "value": false]],
        ]
        #expect(try await answer(terms, typing: "1\n")?["input"]?.array?.first?["value"] == true)
        await #expect(throws: CommandFailure.self) { try await answer(terms, typing: "2\n") }
    }

    @Test("A choice that nobody is there to make is named by its question, in one line")
    func nobody() throws {
        let nobody = Pipe()
        try nobody.fileHandleForWriting.close()
        let input = TerminalInput(descriptor: nobody.fileHandleForReading.fileDescriptor)
        let unanswered = withExtendedLifetime(nobody) {
            #expect(throws: Prompt.NoTerminal.self) {
                try Prompt(input: input).choice("Sign?", ["Approve", "Decline"], default: nil)
            }
        }
        // "Number" is what a page shows for a device.
        #expect(unanswered?.question == "Sign?\n  1) Approve\n  2) Decline\nWhich one")
        let words = try #require(unanswered?.description)
        #expect(words.hasPrefix("The question \"Sign?\" must be answered."), "\(words)")
        #expect(!words.contains("\n"))
    }

    @Test("A requirement of AM's that was not met is said in words, and an unknown one is named")
    func unmet() {
        for policy in ["REQUIRED", "UNIQUE", "MIN_LENGTH", "AT_LEAST_X_NUMBERS", "MATCH_REGEXP", "IS_NEW"] {
            let words = TerminalAnswers.unmet(policy)
            #expect(words.hasSuffix(".") && !words.contains("_") && words != words.uppercased(), "\(words)")
        }
        #expect(TerminalAnswers.unmet("OUR_OWN") == "It does not meet the requirement OUR_OWN.")
    }

    @Test(
        "What has no prompt, several inputs or no text in them goes back as it came",
        arguments: [
            ["type": "C", "output": [], "input": [["name": "IDToken1", "value": "x"]]],
            [
                "type": "C", "output": [["name": "prompt", "value": "?"]],
                "input": [["name": "IDToken1", "value": 1]],
            ],
            [
                "type": "C", "output": [["name": "prompt", "value": "?"]],
                "input": [["name": "IDToken1a", "value": "x"], ["name": "IDToken1b", "value": "y"]],
            ],
        ] as [JSONValue])
    func unchanged(callback: JSONValue) async throws {
        #expect(try await answer(callback, typing: "green\n") == callback)
    }
}
