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
            var body = page.answered(Self.credentials)
            body["authId"] = .string(String(decoding: changed, as: UTF8.self))
            let error = await #expect(throws: EngineError.self) { try await fixture.send(body) }
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
            try await fixture.send(JSONObject([.init(name: "authId", value: .string(text))]))
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
        var body = page.answered(Self.credentials)
        body["authId"] = .string(
            try await JWS.sign(parsed.payload, header: header, with: HMACSigningKey(key)))
        if kind == 3 {
            _ = try await fixture.send(body).token()
        } else {
            await expectError(400, "AuthId JWT Signature not valid") { try await fixture.send(body) }
        }
    }

    @Test("An authId is good in its own realm only")
    func otherRealm() async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        await expectError(400, "The authId belongs to another realm.") {
            try await fixture.send(page.answered(Self.credentials), realm: "/beta")
        }
    }

    @Test("A body without an authId that is not empty is refused")
    func noPointer() async throws {
        let fixture = try await JourneyFixture()
        await expectError(400, "Failed to parse JWT, the authId is missing") {
            try await fixture.send(JSONObject([.init(name: "callbacks", value: [])]))
        }
        await expectError(400, "Failed to parse JWT, malformed") {
            try await fixture.send(JSONObject([.init(name: "authId", value: 7)]))
        }
    }

    private static let count = "Incorrect number of callbacks found in JSON response"
    private static let missing = "Required callback not found in JSON response"

    private static func callback(_ type: JSONValue, _ input: JSONValue?) -> JSONValue {
        var object = JSONObject([.init(name: "type", value: type)])
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
    private static let password = callback(
        "PasswordCallback", input("IDToken2", .string(JourneyFixture.password)))

    static let wrong: [(JSONValue?, String)] = [
        (nil, count), (.null, count), ("x", count), ([], count), ([name], count), ([name, password, name], count),
        ([password, name], missing), ([name, name], missing), ([name, nil], missing), ([name, 7], missing),
        ([name, callback("PasswordCallback", nil)], missing), ([name, callback("PasswordCallback", [])], missing),
        ([name, callback("passwordcallback", input("IDToken2", "x"))], missing),
        ([name, callback("PasswordCallback", input("IDToken1", "x"))], missing),
        ([name, callback("PasswordCallback", input("IDToken2", nil))], notText),
        ([name, callback("PasswordCallback", input("IDToken2", nil as JSONValue?))], notText),
        ([name, callback("PasswordCallback", input("IDToken2", 7))], notText),
        ([name, callback("PasswordCallback", input("IDToken2", "a\u{0}b"))], notText),
        (
            [
                name,
                callback("PasswordCallback", input("IDToken2", .string(String(repeating: "x", count: 4097)))),
            ], notText
        ),
    ]
    private static let notText = "IDToken2 must be a text of at most 4096 bytes without NUL."

    @Test("Callbacks that do not fit are refused, and the step waits still", arguments: wrong.indices)
    func wrongCallbacks(index: Int) async throws {
        let (callbacks, message) = Self.wrong[index]
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        var body = page.json
        body["callbacks"] = callbacks
        await expectError(400, message) { try await fixture.send(body) }
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
        await expectError(400, "IDToken2 must be a number from 0 to 1.") {
            try await fixture.answer(page, [nil, value], session: session)
        }
        _ = try await fixture.answer(page, [nil, "0"], session: session).token()
    }

    @Test("Callbacks that only tell something may be left out, as vendors' apps do")
    func leftOut() async throws {
        let fixture = try await JourneyFixture()
        let session = try await fixture.signIn()
        let page = try await fixture.start("Message", session: session)
        var body = page.answered([nil, 0])
        body["callbacks"] = .array(Array((body["callbacks"]?.array ?? []).dropFirst()))
        _ = try await fixture.send(body, session: session).token()
    }

    @Test(
        "Passwords of any kind that are not the password are wrong",
        arguments: ["", " ", "correct horse 7418", "CORRECT HORSE 7419", "é\u{301}"])
    func wrongPasswords(password: String) async throws {
        let fixture = try await JourneyFixture()
        await expectError(401, "Login failure") { try await fixture.signIn(password: password) }
        await expectError(401, "Login failure") {
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
                "UPDATE journey_steps SET sealed_state = (SELECT sealed_state FROM journey_steps WHERE id = ?2) WHERE id = ?1",
                [.text(try signer.verify(other.authID).step), .text(try signer.verify(one.authID).step)],
                expecting: .exactly(1)))
        let error = await #expect(throws: EngineError.self) { try await fixture.answer(other, Self.credentials) }
        #expect(error?.code == .internalFailure)
        #expect(try await fixture.count("sessions") == 0)
    }
}
