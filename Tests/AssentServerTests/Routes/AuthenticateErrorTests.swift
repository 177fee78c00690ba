import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("What authenticate answers to what is wrong", .server)
struct AuthenticateErrorTests {
    /// A request and the exact answer.
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        var path = "/json/realms/root/realms/alpha/authenticate"
        var fields: [(String, String)] = []
        var body: [UInt8]?
        let status: Int
        /// The whole body; with an ellipsis at its end, how it begins.
        let answer: String

        var testDescription: String { name }

        static func json(_ name: String, _ body: String, _ status: Int, _ answer: String) -> Case {
            Case(
                name: name, fields: [("Content-Type", "application/json")], body: Array(body.utf8), status: status,
                answer: answer)
        }
    }

    private static let base = "/json/realms/root/realms/alpha/authenticate"
    private static let unreadable =
        #"{"code":401,"reason":"Unauthorized","message":"Unable to read transaction.","detail":{"errorCode":"128"}}"#
    private static let noConfiguration =
        #"{"code":400,"reason":"Bad Request","message":"No Configuration found","detail":{"errorCode":"105"}}"#
    private static let badRequest = #"{"code":400,"reason":"Bad Request","message":"…"#
    private static let marks = String(repeating: "\u{301}\u{316}", count: 60_000)
    private static let advice =
        "%3CAdvices%3E%3CAttributeValuePair%3E%3CAttribute%20name%3D%22TransactionConditionAdvice%22%2F%3E%3CValue%3Eabc%3C%2FValue%3E%3C%2FAttributeValuePair%3E%3C%2FAdvices%3E"

    static let cases: [Case] = [
        Case(
            name: "a transaction without a session", path: base + "?authIndexType=transaction&authIndexValue=7b8bfd4c",
            status: 401, answer: unreadable),
        Case(
            name: "a composite advice without a session",
            path: base + "?authIndexType=composite_advice&authIndexValue=" + advice, status: 401, answer: unreadable),
        Case(
            name: "an advice that is none", path: base + "?authIndexType=composite_advice&authIndexValue=%3CAdvices",
            status: 400, answer: badRequest),
        Case(
            name: "an id that was suspended never", path: base + "?suspendedId=abc", status: 401,
            answer:
                #"{"code":401,"reason":"Unauthorized","message":"org.forgerock.openam.auth.nodes.framework.token.SuspendedAuthSessionException: Token not found. It may have expired."}"#
        ),
        Case(
            name: "an unknown journey", path: base + "?authIndexType=service&authIndexValue=Nowhere", status: 400,
            answer: noConfiguration),
        Case(
            name: "a journey that is only for transactions",
            path: base + "?authIndexType=service&authIndexValue=Confirm", status: 400, answer: noConfiguration),
        Case(
            name: "more parameters than are looked through",
            path: base + "?noSession=true" + String(repeating: "&a", count: 256), status: 400,
            answer: #"{"code":400,"reason":"Bad Request","message":"The query has more than 256 parameters."}"#),
        .json(
            "a name that is slow to compare",
            #"{"authId":"x","callbacks":[{"type":"NameCallback","input":[{"name":"I\#(marks)","value":""}]}]}"#, 400,
            badRequest),
        Case(
            name: "an unknown authIndexType", path: base + "?authIndexType=mood&authIndexValue=x", status: 400,
            answer: #"{"code":400,"reason":"Bad Request","message":"Unknown Authentication Index Type"}"#),
        Case(
            name: "a parameter twice", path: base + "?noSession=true&noSession=false", status: 400, answer: badRequest),
        .json(
            "an authId that is none", #"{"authId":"x"}"#, 400,
            #"{"code":400,"reason":"Bad Request","message":"Failed to parse JWT, …"#),
        .json(
            "an authId that is no text", #"{"authId":7}"#, 400,
            #"{"code":400,"reason":"Bad Request","message":"Failed to parse JWT, …"#),
        .json(
            "a body without authId", #"{"callbacks":[]}"#, 400,
            #"{"code":400,"reason":"Bad Request","message":"Failed to parse JWT, …"#),
        .json("an unsigned authId", #"{"authId":"eyJhbGciOiJub25lIn0.e30."}"#, 400, badRequest),
        .json("broken JSON", #"{"authId":"#, 400, badRequest),
        .json("JSON that is no object", "[]", 400, badRequest),
        .json("a member twice", #"{"authId":"x","authId":"y"}"#, 400, badRequest),
        .json("deep JSON", #"{"a":"# + String(repeating: "[", count: 5000), 400, badRequest),
        .json(
            "too large a body", "{\"a\":\"" + String(repeating: "a", count: 300_000) + "\"}", 413,
            #"{"code":413,"reason":"Content Too Large","message":"…"#),
        Case(
            name: "bytes that are no UTF-8", fields: [("Content-Type", "application/json")],
            body: Array(#"{"authId":""#.utf8) + [0xC0, 0xAF] + Array(#""}"#.utf8), status: 400, answer: badRequest),
        Case(
            name: "another media type", fields: [("Content-Type", "text/plain")], body: Array("{}".utf8), status: 415,
            answer: #"{"code":415,"reason":"Unsupported Media Type","message":"…"#),
        Case(
            name: "a form", fields: [("Content-Type", "application/x-www-form-urlencoded")], body: Array("a=b".utf8),
            status: 415, answer: #"{"code":415,"reason":"Unsupported Media Type","message":"…"#),
        Case(
            name: "an unknown realm", path: "/json/realms/root/realms/gamma/authenticate", status: 400,
            answer: #"{"code":400,"reason":"Bad Request","message":"Invalid realm, /gamma"}"#),
        Case(
            name: "the root realm, which this server has not", path: "/json/authenticate", status: 400,
            answer: #"{"code":400,"reason":"Bad Request","message":"Invalid realm, /"}"#),
        Case(
            name: "an unknown version", fields: [("Accept-API-Version", "protocol=1.0,resource=999.0")], status: 404,
            answer:
                #"{"code":404,"reason":"Not Found","message":"Accept-API-Version: Requested version \"999.0\" does not match any routes."}"#
        ),
        Case(
            name: "a version that is none", fields: [("Accept-API-Version", "resource=x")], status: 400,
            answer: badRequest),
        Case(
            name: "a cookie without the fields against forged requests", fields: [("Cookie", "iPlanetDirectoryPro=x")],
            status: 403, answer: #"{"code":403,"reason":"Forbidden","message":"…"#),
        Case(
            name: "an unknown endpoint", path: "/json/realms/root/realms/alpha/dashboard", status: 404,
            answer: #"{"code":404,"reason":"Not Found","message":"Resource not found."}"#),
    ]

    @Test("Each mistake has AM's status and envelope", arguments: cases)
    func mistakes(_ example: Case) async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.send("POST", fixture.server(example.path), example.fields, body: example.body)
        #expect(reply.status == example.status)
        if example.answer.hasSuffix("…") {
            #expect(reply.text.hasPrefix(example.answer.dropLast()), "\(reply.text)")
            #expect(reply.json["message"]?.string?.isEmpty == false)
        } else {
            #expect(reply.text == example.answer)
        }
        #expect(reply["Content-Type"] == "application/json")
        #expect(reply["Cache-Control"] == "no-cache, no-store, must-revalidate")
        #expect(reply["Set-Cookie"] == nil)
    }

    @Test("A wrong password and an unknown user get the same answer, byte for byte")
    func loginFailure() async throws {
        let fixture = try #require(ServerFixture.shared)
        for name in ["ben", "nobody"] {
            let reply = try await fixture.runJourney([("authIndexType", "service"), ("authIndexValue", "Quick")]) {
                ["NameCallback": .string(name), "PasswordCallback": "wrong"][$0]
            }
            #expect(reply.status == 401)
            #expect(
                reply.text
                    == #"{"code":401,"reason":"Unauthorized","message":"Login failure","detail":{"failureUrl":""}}"#)
            #expect(reply["Set-Cookie"] == nil)
        }
    }

    /// How a page's answer is spoiled, and what is said about it.
    enum Spoiling: String, Sendable, CaseIterable {
        case noCallbacks, oneMissing, otherOrder, otherType, noInput, otherName, numberForText, oneMore, flippedAuthID

        func apply(_ page: JSONValue) -> JSONValue {
            var object = page.object ?? JSONObject()
            var callbacks = page["callbacks"]?.array ?? []
            func changed(_ callback: JSONValue, _ name: String, _ value: JSONValue) -> JSONValue {
                var object = callback.object ?? JSONObject()
                object[name] = value
                return .object(object)
            }
            switch self {
            case .noCallbacks: callbacks = []
            case .oneMissing: callbacks.removeLast()
            case .otherOrder: callbacks.reverse()
            case .otherType: callbacks[0] = changed(callbacks[0], "type", "ChoiceCallback")
            case .noInput: callbacks[0] = changed(callbacks[0], "input", [])
            case .otherName:
                callbacks[0] = changed(callbacks[0], "input", [["name": "IDToken9", "value": "x"]])
            case .numberForText: callbacks[0] = changed(callbacks[0], "input", [["name": "IDToken1", "value": 7]])
            case .oneMore: callbacks.append(callbacks[0])
            case .flippedAuthID:
                var text = Array((page["authId"]?.string ?? "").utf8)
                let index = text.count - 9
                text[index] = text[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
                object["authId"] = .string(String(decoding: text, as: UTF8.self))
            }
            object["callbacks"] = .array(callbacks)
            return .object(object)
        }

        var message: String {
            switch self {
            case .noCallbacks, .oneMissing, .oneMore: "Incorrect number of callbacks found in JSON response"
            case .otherOrder, .otherType, .noInput, .otherName: "Required callback not found in JSON response"
            case .numberForText: "IDToken1 must be a text of at most"
            case .flippedAuthID: "AuthId JWT Signature not valid"
            }
        }
    }

    @Test(
        "An answer that does not fit the page is refused, and the right one is still good", arguments: Spoiling.allCases
    )
    func spoiled(_ spoiling: Spoiling) async throws {
        let fixture = try #require(ServerFixture.shared)
        let url = fixture.json("authenticate")
        let page = try await fixture.send("POST", url + "?authIndexType=service&authIndexValue=Quick")
        let password = try fixture.account("ben").password.reveal()
        let right = ServerFixture.filled(page.json) { type in
            type == "NameCallback" ? "ben" : .string(password)
        }
        let fields = [("Content-Type", "application/json")]
        let refused = try await fixture.send("POST", url, fields, body: spoiling.apply(right).serializedBytes())
        #expect(refused.status == 400)
        #expect(refused.json["message"]?.string?.hasPrefix(spoiling.message) == true, "\(refused.text)")
        let accepted = try await fixture.send("POST", url, fields, body: right.serializedBytes())
        #expect(accepted.status == 200)
        #expect(accepted.json["tokenId"] != nil)
    }

    @Test("Only POST is taken", arguments: ["GET", "PUT", "DELETE", "PATCH"])
    func methods(_ method: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        #expect(try await fixture.send(method, fixture.json("authenticate")).status == 405)
    }
}
