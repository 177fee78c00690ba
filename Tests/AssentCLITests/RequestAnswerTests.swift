import Assent
import AssentCore
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI

@Suite("assent request --json: a reply as one object")
struct RequestAnswerTests {
    private func told(
        _ body: [UInt8] = [], _ fields: HTTPFields = [:], _ authorization: ReplyAuthorization = .notAsked
    ) async throws -> JSONValue {
        var reply = HTTPReply(HTTPResponse(status: .created, headerFields: fields), body: HTTPBody(body))
        reply.authorization = authorization
        return try await RequestAnswer(reply).json
    }

    @Test(
        "A body is the value that it has as JSON where the reply says so, else a text",
        arguments: [
            ("application/json", #"{"amount":1.10,"to":["Bob"]}"#, "json"), ("application/json", "null", "json"),
            ("Application/Problem+JSON; charset=UTF-8", #"{"status":403}"#, "json"),
            ("application/json", "", "text"), ("application/json", "{", "text"),
            ("application/json", #"{"to":"Bob","to":"Eve"}"#, "text"), ("text/plain", "7", "text"),
            ("application/jsonp", "7", "text"), (nil, "7", "text"),
        ] as [(String?, String, String)])
    func body(type: String?, text: String, encoding: String) async throws {
        var fields = HTTPFields()
        fields[.contentType] = type
        let told = try await told(Array(text.utf8), fields)
        let expected = encoding == "json" ? try JSONValue.parse(text) : JSONValue.string(text)
        #expect(told["status"]?.integer == 201)
        #expect(told["body"] == expected && told["bodyEncoding"]?.string == encoding)
        // Digits stay as they came.
        #expect(told.serialized().contains("1.10") == text.contains("1.10"))
    }

    @Test("Bytes that are no UTF-8 are base64, whatever the reply says")
    func bytes() async throws {
        for type in ["application/json", "application/octet-stream"] {
            let told = try await told([0xFF, 0x00, 0xC3, 0x28], [.contentType: type])
            #expect(told["body"]?.string == "/wDDKA==" && told["bodyEncoding"]?.string == "base64")
        }
    }

    @Test("Fields are by their names, those that are there twice with both values, and without cookies")
    func fields() async throws {
        var fields: HTTPFields = [.vary: "Accept", .setCookie: "session=secret", .retryAfter: "7"]
        fields.append(HTTPField(name: .vary, value: "Origin"))
        let told = try await told([], fields)
        #expect(told["fields"] == ["vary": "Accept, Origin", "retry-after": "7"])
        #expect(!told.serialized().contains("secret"))
    }

    @Test("What the user has approved has its transaction; where nobody was asked there is null")
    func authorization() async throws {
        for authorization in [ReplyAuthorization.notAsked, .notOurs] {
            let told = try await told([], [:], authorization)
            #expect(told.object?.names == ["status", "fields", "body", "bodyEncoding", "authorization"])
            #expect(told["authorization"] == JSONValue.null)
        }
        let approved = try await told([], [:], .approved(transactionID: "t-1", binding: .notStated))
        #expect(approved["authorization"] == ["transaction": "t-1", "approved": true])
        let signedIn = try await told([], [:], .approved(transactionID: nil, binding: .notStated))
        #expect(signedIn["authorization"] == ["transaction": .null, "approved": true])
    }

    @Test("With --json a failure is one object on standard output, and words on standard error; else words alone")
    func failure() throws {
        let home = try VaultCommandTests.Home()
        let unreadable = ["POST", "https://a.example/", "--data-file", "/nowhere/body"]
        let commands: [[String]] = [
            ["request"] + unreadable, ["request", "GET", "https://a.example/"],
            ["login", "--stateless", "--then", "GET", "https://a.example/"],
        ]
        for arguments in commands {
            let plain = try home.run(arguments)
            #expect(plain.status != 0 && plain.out.isEmpty && !plain.err.isEmpty, "\(arguments): \(plain)")
            let told = try home.run(arguments + ["--json"])
            #expect(told.status == plain.status && told.err == plain.err, "\(arguments): \(told)")
            let names = try JSONValue.parse(told.out).object?.names
            #expect(names == ["error", "detail"], "\(arguments): \(told.out)")
        }
    }
}
