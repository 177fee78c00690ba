import AssentCore
import AssentJourney
import Testing

@Suite("A step says that the answer before was refused") struct RefusalTests {
    private let password = callback("PasswordCallback", ["prompt": "Password"], input: "")

    /// The refusal in the step that comes for an answer to `first`.
    private func refusal(
        _ first: [JSONValue], then second: [JSONValue], answer: (inout JourneyStep) -> Void
    ) async throws -> AnswerRefusal? {
        let client = try client(script([step(first), step(second, authId: "A2")]))
        guard case .continue(var asked) = await client.start("Login") else { throw JourneyFailure(.malformedReply, "") }
        #expect(asked.refusal == nil)
        answer(&asked)
        guard case .continue(let next) = await client.next(asked) else { throw JourneyFailure(.malformedReply, "") }
        return next.refusal
    }

    private func typed(_ step: inout JourneyStep) {
        step[PasswordCallback.self]?.password = "wrong"
        step[TextInputCallback.self]?.text = "000000"
    }

    @Test("The same question again is a refusal, in words if the server has some")
    func words() async throws {
        #expect(try await refusal([password], then: [password], answer: typed)?.messages == [])
        let texts = [
            callback("TextOutputCallback", ["message": "Welcome", "messageType": "0"]),
            callback("TextOutputCallback", ["message": "Wrong", "messageType": "2"]),
            callback("TextOutputCallback", ["message": "alert(1)", "messageType": "4"]),
        ]
        #expect(
            try await refusal([password], then: texts + [password], answer: typed)?.messages == ["Welcome", "Wrong"])
        #expect(
            try await refusal([texts[0], password], then: texts + [password], answer: typed)?.messages == ["Wrong"])
        // The same complaint again is a complaint again.
        #expect(try await refusal(texts + [password], then: texts + [password], answer: typed)?.messages == ["Wrong"])
    }

    @Test("What a new password does not meet is named by AM's names")
    func policies() async throws {
        let strict = callback(
            "PasswordCallback",
            [
                "prompt": "Password",
                "failedPolicies": [
                    #"{"policyRequirement":"MIN_LENGTH","params":{"minLength":8}}"#, "no JSON",
                    #"{"policyRequirement":"UNIQUE"}"#,
                ],
            ], input: "")
        #expect(
            try await refusal([password], then: [strict], answer: typed)?.failedPolicies == ["MIN_LENGTH", "UNIQUE"])
    }

    @Test("A number that breaks a rule is a refusal, as a text is")
    func number() async throws {
        let asked = callback("NumberAttributeInputCallback", ["prompt": "Limit"], input: 0)
        let refused = callback(
            "NumberAttributeInputCallback",
            ["prompt": "Limit", "failedPolicies": [#"{"policyRequirement":"MAXIMUM_NUMBER_VALUE"}"#]], input: 0)
        let found = try await refusal([asked], then: [refused]) { $0[NumberAttributeInputCallback.self]?.value = 9 }
        #expect(found?.failedPolicies == ["MAXIMUM_NUMBER_VALUE"])
    }

    @Test("Another question is no refusal, nor is the same page where nothing was typed")
    func noRefusal() async throws {
        let code = callback("TextInputCallback", ["prompt": "Code"], input: "")
        let otherCode = callback("TextInputCallback", ["prompt": "Next code"], input: "")
        let button = callback("ConfirmationCallback", ["options": ["OK"]], input: 100)
        #expect(try await refusal([password], then: [code], answer: typed) == nil)
        #expect(try await refusal([code], then: [otherCode], answer: typed) == nil)
        #expect(try await refusal([password], then: [password, code], answer: typed) == nil)
        #expect(
            try await refusal([button], then: [button]) { $0[ConfirmationCallback.self]?.selectedValue = 0 } == nil)
        #expect(try await refusal([password], then: [password]) { _ in } == nil)
    }

    @Test("Every failure says in sentences what happened and what to do")
    func sentences() {
        for code in [
            JourneyFailure.Code.invalidConfiguration, .invalidResumeURL, .transport, .cancelled, .timedOut,
            .unexpectedRedirect, .unexpectedStatus, .malformedReply, .replyTooLarge, .stepInUse, .unanswered,
            .repeatedAnswers, .tooManySteps, .suspended, .storageFailed, .declined, .keyUnavailable, .keyLost,
            .proofRefused,
        ] {
            #expect(JourneyFailure(code, "x").suggestion?.hasSuffix(".") == true, "\(code)")
        }
        for status in [400, 401, 503] {
            let error = JourneyError(status: status, body: JSONObject())
            #expect(error.detail.hasSuffix(".") && error.suggestion?.hasSuffix(".") == true)
        }
    }
}
