import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Authentication: what a client should not send")
struct BadInputTests {
    private static let credentials: [JSONValue?] = [.string("ana"), .string(JourneyFixture.password)]

    @Test("No changed bit of an authId is accepted")
    func flippedAuthID() async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        let characters = Array(page.authID.utf8)
        for index in characters.indices {
            var changed = characters
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            var answer = page.answered(Self.credentials)
            answer.authID = String(decoding: changed, as: UTF8.self)
            let sent = answer
            let error = await #expect(throws: EngineError.self) { try await fixture.send(sent) }
            #expect(error == EngineError(.authIDInvalid) || error == EngineError(.authIDUnreadable))
        }
        #expect(try await fixture.count("sessions") == 0)
        _ = try await fixture.answer(page, Self.credentials).token()
    }

    @Test(
        "What is no authId is refused",
        arguments: ["", ".", "..", "x", "e30.e30.e30", "eyJhbGciOiJub25lIn0.e30.", String(repeating: "a", count: 5000)])
    func noAuthID(text: String) async throws {
        let fixture = try await JourneyFixture()
        let error = await #expect(throws: EngineError.self) {
            try await fixture.send(PageAnswer(authID: text, callbacks: nil))
        }
        #expect(error?.code == .authIDUnreadable)
    }

    @Test("An authId signed with another key, or of another type, or another kid is refused", arguments: 0..<4)
    func forged(kind: Int) async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        let parsed = try UnverifiedJWS.parse(page.authID)
        var header = parsed.header
        header["alg"] = nil
        var key = fixture.context.masterKey.derivedSecret(for: .authID)
        switch kind {
        case 0: key = Secret(bytes: [UInt8](repeating: 7, count: 32))
        case 1: header["typ"] = "JWT"
        case 2: header["kid"] = "other"
        default: break
        }
        var answer = page.answered(Self.credentials)
        answer.authID = try await JWS.sign(parsed.payload, header: header, with: HMACSigningKey(key))
        let sent = answer
        if kind == 3 {
            _ = try await fixture.send(sent).token()
        } else {
            await expectError(.authIDInvalid) { try await fixture.send(sent) }
        }
    }

    @Test("An authId is good in its own realm only")
    func otherRealm() async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        await expectError(.invalidRequest, "The authId belongs to another realm.") {
            try await fixture.send(page.answered(Self.credentials), realm: "/beta")
        }
    }

    private static let count = EngineError(.wrongCallbackCount)
    private static let missing = EngineError(.missingCallback)
    private static let notText = EngineError(
        .invalidAnswer, "must be a text of at most 4096 bytes without NUL.", about: "2")

    private static func callback(
        _ kind: CallbackKind?, _ place: Int?, _ value: ReturnedInput.Value
    ) -> ReturnedCallback {
        let name = place.map { InputName(place: $0) }
        return ReturnedCallback(kind: kind, inputs: [ReturnedInput(name: name, value: value)])
    }

    private static let name = callback(.name, 1, .text("ana"))
    private static let password = callback(.password, 2, .text(JourneyFixture.password))

    static let wrong: [([ReturnedCallback]?, EngineError)] = [
        (nil, count), ([], count), ([name], count), ([name, password, name], count), ([password, name], missing),
        ([name, name], missing), ([name, callback(nil, 2, .text("x"))], missing),
        ([name, ReturnedCallback(kind: .password, inputs: nil)], missing),
        ([name, ReturnedCallback(kind: .password, inputs: [])], missing),
        ([name, callback(CallbackKind(rawValue: "passwordcallback"), 2, .text("x"))], missing),
        ([name, callback(.password, 1, .text("x"))], missing), ([name, callback(.password, 0, .text("x"))], missing),
        ([name, callback(.password, 2, .none)], notText), ([name, callback(.password, nil, .none)], notText),
        ([name, callback(.password, 2, .number(7))], notText),
        ([name, callback(.password, 2, .text("a\u{0}b"))], notText),
        ([name, callback(.password, 2, .text(String(repeating: "x", count: 4097)))], notText),
    ]

    @Test("Callbacks that do not fit are refused, and the step waits still", arguments: wrong.indices)
    func wrongCallbacks(index: Int) async throws {
        let (callbacks, expected) = Self.wrong[index]
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        await expectError(expected.code, expected.detail, about: expected.subject) {
            try await fixture.send(PageAnswer(authID: page.authID, callbacks: callbacks))
        }
        #expect(fixture.derivations.count == 2)
        _ = try await fixture.answer(page, Self.credentials).token()
    }

    @Test(
        "A choice must be one of the choices, as a number or its text",
        arguments: [2, -1, "x", "2", nil, true, "0x0"] as [JSONValue])
    func wrongChoice(value: JSONValue) async throws {
        let fixture = try await JourneyFixture()
        let session = try await fixture.signIn()
        let page = try await fixture.start("Message", session: session)
        #expect(page.types == ["TextOutputCallback", "ConfirmationCallback"])
        await expectError(.invalidAnswer, "must be a number from 0 to 1.", about: "2") {
            try await fixture.answer(page, [nil, value], session: session)
        }
        _ = try await fixture.answer(page, [nil, "0"], session: session).token()
    }

    @Test("Callbacks that only tell something may be left out, as vendors' apps do")
    func leftOut() async throws {
        let fixture = try await JourneyFixture()
        let session = try await fixture.signIn()
        let page = try await fixture.start("Message", session: session)
        let answer = page.answered([nil, 0])
        let shorter = PageAnswer(authID: page.authID, callbacks: answer.callbacks.map { Array($0.dropFirst()) })
        _ = try await fixture.send(shorter, session: session).token()
    }

    @Test(
        "Passwords of any kind that are not the password are wrong",
        arguments: ["", " ", "correct horse 7418", "CORRECT HORSE 7419", "é\u{301}"])
    func wrongPasswords(password: String) async throws {
        let fixture = try await JourneyFixture()
        await expectError(.loginFailed) { try await fixture.signIn(password: password) }
        await expectError(.loginFailed) {
            try await fixture.signIn(password: String(repeating: JourneyFixture.password, count: 100))
        }
    }

    @Test("Nothing that was stored opens in another step's place")
    func swappedStates() async throws {
        let fixture = try await JourneyFixture()
        let one = try await fixture.start("Password")
        let other = try await fixture.start("Login")
        let signer = AuthIDSigner(fixture.context.masterKey)
        _ = try await fixture.database.run(
            SQLStatement(
                "UPDATE journey_steps SET sealed_state = (SELECT sealed_state FROM journey_steps WHERE id = \(try signer.verify(one.authID).stepID)) WHERE id = \(try signer.verify(other.authID).stepID)",
                expecting: .exactly(1)))
        let error = await #expect(throws: EngineError.self) { try await fixture.answer(other, Self.credentials) }
        #expect(error?.code == .internalFailure)
        #expect(try await fixture.count("sessions") == 0)
    }
}
