import AssentCore
import AssentJourney
import AssentTesting
import HTTPTypes
import Testing

@Suite struct DriverTests {
    let wrong = callback("TextOutputCallback", ["message": "Wrong password", "messageType": "2"])

    @Test("A journey is walked to its session")
    func walk() async throws {
        let transport = script([
            step([name, password]), step([callback("TextInputCallback", [:], input: "")], authId: "A2"), success,
        ])
        var stages = 0
        let session = try await client(transport).run("Login") { step in
            stages += 1
            step[NameCallback.self]?.name = "ana"
            step[PasswordCallback.self]?.password = "pw"
            step[TextInputCallback.self]?.text = "123456"
            return .next
        }
        #expect(session.token == Secret("T0ken") && stages == 2)
        #expect(transport.exchanges[1].json?["authId"] == "A1" && transport.exchanges[2].json?["authId"] == "A2")
    }

    @Test("What has no answer is named, and nothing is sent")
    func unanswered() async throws {
        let transport = script([step([name, password, callback("TextInputCallback", [:], input: "")])])
        let failure = await #expect(throws: JourneyFailure.self) {
            try await client(transport).run { step in
                step[NameCallback.self]?.name = "ana"
                return .next
            }
        }
        #expect(failure?.code == .unanswered)
        #expect(failure?.prompts == ["Password", "TextInputCallback"])
        #expect(transport.exchanges.count == 1)
    }

    @Test("What has no answer is sent as it came when that was said")
    func nextUnanswered() async throws {
        let transport = script([step([name]), success])
        _ = try await client(transport).run { _ in .nextUnanswered }
        #expect(transport.exchanges[1].json?["callbacks"] == [name])
    }

    @Test("The same wrong password again is only wrong, and the step says that the last one was refused, and why")
    func wrongTwice() async throws {
        let refused = step([wrong, name, password], authId: "A2")
        let transport = script([step([name, password]), refused, refused, success])
        var seen: [AnswerRefusal?] = []
        let session = try await client(transport).run { step in
            seen.append(step.refusal)
            step[NameCallback.self]?.name = "ana"
            step[PasswordCallback.self]?.password = seen.count < 3 ? "wrong" : "right"
            return .next
        }
        #expect(session.token == Secret("T0ken"))
        #expect(seen.map { $0?.messages } == [nil, ["Wrong password"], ["Wrong password"]])
    }

    @Test("A handler that answers without looking does not try the same wrong password for ever")
    func repeated() async throws {
        for second in [step([name, password], authId: "A2"), step([wrong, name, password], authId: "A2")] {
            for limit in [1, 3] {
                let transport = script([step([name, password]), second])
                let failure = await #expect(throws: JourneyFailure.self) {
                    try await client(transport, limits: JourneyLimits(sameAnswers: limit)).run { step in
                        step[NameCallback.self]?.name = "ana"
                        step[PasswordCallback.self]?.password = "wrong"
                        return .next
                    }
                }
                #expect(failure?.code == .repeatedAnswers && failure?.suggestion?.isEmpty == false)
                #expect(transport.exchanges.count == 1 + limit)
            }
        }
    }

    @Test("Another answer in between starts the count anew")
    func countedInARow() async throws {
        let asked = step([password], authId: "A2")
        let transport = script([step([password]), asked, asked, asked, asked, success])
        var tries = ["a", "a", "b", "a", "a"][...]
        _ = try await client(transport, limits: JourneyLimits(sameAnswers: 2)).run { step in
            step[PasswordCallback.self]?.password = tries.removeFirst()
            return .next
        }
        #expect(transport.exchanges.count == 6)
    }

    @Test("Another answer to the same step is sent, and the same button on another page")
    func notRepeated() async throws {
        let transport = script([step([password]), step([password]), success])
        var tries = 0
        _ = try await client(transport).run { step in
            tries += 1
            step[PasswordCallback.self]?.password = "try \(tries)"
            return .next
        }
        let page = { (text: String) in
            step([
                callback("TextOutputCallback", ["message": .string(text)]),
                callback("ConfirmationCallback", ["options": ["OK"]], input: 100),
            ])
        }
        _ = try await client(script([page("Terms"), page("Privacy"), success])).run { step in
            step[ConfirmationCallback.self]?.selectedValue = 0
            return .next
        }
    }

    @Test("A server that never ends is left")
    func stepLimit() async throws {
        let transport = script([step([callback("TextOutputCallback", ["message": "m"])])])
        await #expect(throws: JourneyFailure(.tooManySteps, "")) {
            try await client(transport, limits: JourneyLimits(steps: 5)).run { _ in .next }
        }
        #expect(transport.exchanges.count == 6)
    }

    @Test(
        "A wait takes the time that the server asks for, within bounds, and the step is sent again")
    func polling() async throws {
        let poll = { (time: String) in
            step([
                callback("PollingWaitCallback", ["waitTime": .string(time)]),
                callback("ConfirmationCallback", ["options": ["Exit"]], input: 100),
            ])
        }
        let clock = ManualClock()
        let transport = script([poll("8000"), poll("9999999999"), poll("8000"), success])
        let client = try client(transport, clock: clock, limits: JourneyLimits(longestWait: 60))
        let run = Task { try await client.run { _ in .next } }
        var waited: [Double] = []
        for seconds in [8.0, 60, 8] {
            while clock.sleeperCount == 0 { await Task.yield() }
            let sent = transport.exchanges.count
            clock.advance(by: seconds - 0.001)
            #expect(clock.sleeperCount == 1)
            #expect(transport.exchanges.count == sent)
            clock.advance(by: 0.002)
            waited.append(seconds)
        }
        #expect(try await run.value.token == Secret("T0ken"))
        #expect(transport.exchanges.count == 4)
    }

    @Test("A wait ends at once when a button was pressed, and waiting for ever is not possible")
    func pollingEnds() async throws {
        let poll = step([
            callback("PollingWaitCallback", ["waitTime": "1"]),
            callback("ConfirmationCallback", ["options": ["Exit"]], input: 100),
        ])
        let clock = ManualClock()
        _ = try await client(script([poll, success]), clock: clock).run { step in
            step[ConfirmationCallback.self]?.selectedValue = 0
            return .next
        }
        await #expect(throws: JourneyFailure(.tooManySteps, "")) {
            try await client(script([poll]), clock: clock, limits: JourneyLimits(allWaits: 0.1)).run { _ in .next }
        }
    }

    @Test(
        "Declining presses the button for it, once, and throws",
        arguments: [
            (callback("ConfirmationCallback", ["options": ["Approve", "Decline"]], input: 100), 1),
            (callback("ConfirmationCallback", ["optionType": 2], input: 100), 2),
            (callback("ChoiceCallback", ["choices": ["Deny", "Allow"]], input: 1), 0),
        ] as [(JSONValue, JSONValue)])
    func decline(button: JSONValue, value: JSONValue) async throws {
        let transport = script([step([password, button]), success])
        await #expect(throws: JourneyFailure(.declined, "")) {
            try await client(transport).run { step in
                step[PasswordCallback.self]?.password = "half-typed"
                return .decline
            }
        }
        #expect(transport.exchanges.count == 2)
        #expect(transport.exchanges[1].json?["callbacks"]?.array?[1]["input"]?.array?[0]["value"] == value)
    }

    @Test("Declining where there is no button for it sends nothing")
    func declineSilently() async throws {
        let transport = script([step([password])])
        await #expect(throws: JourneyFailure(.declined, "")) { try await client(transport).run { _ in .decline } }
        #expect(transport.exchanges.count == 1)
    }

    @Test("A suspended journey says so instead of sending")
    func suspended() async throws {
        let transport = script([step([callback("SuspendedTextOutputCallback", ["message": "See your mail"])])])
        await #expect(throws: JourneyFailure(.suspended, "")) { try await client(transport).run { _ in .next } }
        #expect(transport.exchanges.count == 1)
    }

    @Test("What the handler throws comes out as it is, and nothing more is sent")
    func handlerThrows() async throws {
        struct Closed: Error {}
        let transport = script([step([name])])
        await #expect(throws: Closed.self) { try await client(transport).run { _ in throw Closed() } }
        #expect(transport.exchanges.count == 1)
    }

    @Test("The server's no and a failure are thrown as they are")
    func refusals() async throws {
        await #expect(throws: JourneyError(status: 401, body: JSONObject())) {
            try await client(script([.json(401, [:])])).run { _ in .next }
        }
        await #expect(throws: JourneyFailure(.malformedReply, "")) {
            try await client(script([.json(200, [:])])).run { _ in .next }
        }
    }

    @Test("Cancelling a wait ends the run with a cancellation")
    func cancelled() async throws {
        let clock = ManualClock()
        let client = try client(script([step([callback("PollingWaitCallback", ["waitTime": "8000"])])]), clock: clock)
        let run = Task { try await client.run { _ in .next } }
        while clock.sleeperCount == 0 { await Task.yield() }
        run.cancel()
        await #expect(throws: CancellationError.self) { try await run.value }
    }

    @Test("The handler runs in its caller's isolation")
    @MainActor func isolation() async throws {
        var seen: [String] = []
        _ = try await client(script([step([name]), success])).run { step in
            MainActor.assertIsolated()
            seen.append(step.callbacks[0].prompt)
            return .nextUnanswered
        }
        #expect(seen == ["User Name"])
    }
}
