import AssentCore
import HTTPTypes
import Testing

@Suite("ReceivedAdvice")
struct ReceivedAdviceTests {
    private static let id = "39dfdd15-59a3-473c-a7fc-ecda3bbc3bc8"
    private static let map =
        "eyJUcmFuc2FjdGlvbkNvbmRpdGlvbkFkdmljZSI6WyIzOWRmZGQxNS01OWEzLTQ3M2MtYTdmYy1lY2RhM2JiYzNiYzgiXX0="
    private static let field = #"SSOADVICE realm="/",advices="\#(map)",am_uri="https://openam.example.com/am""#

    @Test(
        "The header is read in any order, case, spacing and company",
        arguments: [
            [field], ["ssoadvice  AM_URI=\"https://openam.example.com/am\" , Advices=\"\(map)\"  ,\trealm=\"/\""],
            ["SSOADVICE advices=\"\(map)\",realm=\"/\",am_uri=\"https://openam.example.com/am\""],
            ["Bearer realm=\"a, b\", " + field], [field + ", Bearer error=invalid_token"],
            ["Bearer", field, "Basic realm=\"x\""],
            ["broken =", field], ["SSOADVICE realm=\"/\",am_uri=\"https://other\"", field],
            [field.replacing("=\",am", with: "\",am")],
        ])
    func header(fields: [String]) throws {
        let received = try #require(try ReceivedAdvice(challenges: fields))
        #expect(received.advice.kind == .transaction(id: Self.id))
        #expect(received.form == .header)
        #expect(received.server == "https://openam.example.com/am")
        #expect(received.serverOrigin == (try Origin("https://openam.example.com:443")))
        #expect(received.realm == "/")
    }

    @Test(
        "A header without an advice is not one",
        arguments: [
            [], ["Bearer"], ["broken ="], ["SSOADVICE realm=\"/\",am_uri=\"https://am\""],
            ["SSOADVICEX advices=\"\(map)\""],
        ])
    func noHeader(fields: [String]) throws {
        #expect(try ReceivedAdvice(challenges: fields) == nil)
    }

    @Test(
        "A header whose advice cannot be read is an error",
        arguments: [
            [field.replacing("eyJU", with: "eyJ!")], [field.replacing("iXX0=", with: "i")],
            [field.replacing("https:", with: "ftp:")], [field.replacing("https://openam", with: "https://u@openam")],
            [field, field], [field + ", " + field], ["SSOADVICE advices=\"\(map)"], ["SSOADVICE advices=\"\""],
            ["SSOADVICE advices=\"e30=\""], ["SSOADVICE advices=\"\(map)\",advices=\"\(map)\""],
        ])
    func brokenHeader(fields: [String]) {
        #expect(throws: WireError.self) { try ReceivedAdvice(challenges: fields) }
    }

    @Test("A header may name a journey, and conditions that nobody knows")
    func otherHeader() throws {
        let advice = try Advice([.init(.init(rawValue: "FutureAdvice"), ["x"])])
        let field = try advice.challengeFieldValue(server: "https://am", realm: "/")
        #expect(try ReceivedAdvice(challenges: [field])?.advice == advice)
    }

    @Test("The redirects of old and new gateways are read")
    func redirects() throws {
        let old =
            "http://openam.example.com:8081/openam/?goto=http://openig.example.com:8080/products?_txid%3D3b8c1b2b&realm=/"
            + "&authIndexType=composite_advice&authIndexValue=%3CAdvices%3E%3CAttributeValuePair%3E%3CAttribute%20name%3D"
            + "%22TransactionConditionAdvice%22/%3E%3CValue%3E3b8c1b2b%3C/Value%3E%3C/AttributeValuePair%3E%3C/Advices%3E"
        let received = try #require(try ReceivedAdvice(location: old))
        #expect(received.advice.transactionID == "3b8c1b2b")
        #expect(received.goto == "http://openig.example.com:8080/products?_txid=3b8c1b2b")
        #expect(received.server == "http://openam.example.com:8081/openam/")
        let raw = try #require(
            try ReceivedAdvice(location: old.replacing("%3C", with: "<").replacing("%20", with: " ")))
        #expect(raw.advice == received.advice)
    }

    @Test("A goto that cannot be decoded does not hide the advice")
    func brokenGoto() throws {
        let advice = CompositeAdvice.base64URL(try Advice(transactionID: Self.id))
        let location = "https://am/?goto=https://ig/x?_txid%ca26&realm=/&authIndexType=composite_advice&authIndexValue="
        let received = try #require(try ReceivedAdvice(location: location + advice + "#x"))
        #expect(received.advice.transactionID == Self.id)
        #expect(received.goto == nil)
    }

    @Test(
        "A redirect without a composite advice is a redirect like any other",
        arguments: [
            "https://am/login", "https://am/?goto=x", "", "/relative", "https://am/?authIndexType=composite_advice",
            "https://am/?authIndexType=service&authIndexValue=Login", "https://am/?authIndexValue=%3CAdvices%3E",
            "https://am/#?authIndexType=composite_advice&authIndexValue=x",
        ])
    func otherRedirect(location: String) throws {
        #expect(try ReceivedAdvice(location: location) == nil)
    }

    @Test(
        "A redirect whose advice cannot be read, or that says where to in an odd way, is an error",
        arguments: [
            "https://am/?authIndexType=composite_advice&authIndexValue=%3CAdvices%3E",
            "https://am/?authIndexType=composite_advice&authIndexValue=%3",
            "https://am/?authIndexType=composite_advice&authIndexValue=",
            "https://am/?authIndexType=composite_advice&authIndexValue=A&authIndexValue=A",
            "https://am/?authIndexType=composite_advice&authIndexType=service&authIndexValue=A",
            "/?authIndexType=composite_advice&authIndexValue=VALUE",
            "//am/?authIndexType=composite_advice&authIndexValue=VALUE",
            "https://user@am/?authIndexType=composite_advice&authIndexValue=VALUE",
            "https://am\\@evil/?authIndexType=composite_advice&authIndexValue=VALUE",
            "javascript:x?authIndexType=composite_advice&authIndexValue=VALUE",
            "https://am/?realm=a&realm=b&authIndexType=composite_advice&authIndexValue=VALUE",
        ])
    func brokenRedirect(location: String) throws {
        let value = CompositeAdvice.base64URL(try Advice(transactionID: Self.id))
        #expect(throws: WireError.self) { try ReceivedAdvice(location: location.replacing("VALUE", with: value)) }
    }

    @Test("The status decides which field counts")
    func status() throws {
        let location = try Advice(transactionID: "t").redirectLocation(
            server: "https://am", goto: "https://ig/", realm: "/")
        let fields: HTTPFields = [.wwwAuthenticate: Self.field, .location: location]
        let forms = try [200, 302, 303, 307, 308, 401, 403].map { code in
            try ReceivedAdvice(HTTPResponse(status: .init(code: code), headerFields: fields))?.form
        }
        #expect(forms == [nil, nil, nil, .redirect, nil, .header, nil])
        #expect(try ReceivedAdvice(HTTPResponse(status: .temporaryRedirect)) == nil)
        #expect(try ReceivedAdvice(HTTPResponse(status: .unauthorized)) == nil)
        var twice: HTTPFields = [:]
        twice.append(.init(name: .location, value: location))
        twice.append(.init(name: .location, value: location))
        #expect(throws: WireError(.duplicate, "")) {
            try ReceivedAdvice(HTTPResponse(status: .temporaryRedirect, headerFields: twice))
        }
    }

    @Test(
        "A policy decision's body is read in its three shapes",
        arguments: [
            #"{"resource":"r","actions":{},"attributes":{},"advices":{"TransactionConditionAdvice":["t"]},"ttl":0}"#,
            #"[{"advices":{"TransactionConditionAdvice":["t"]},"ttl":9223372036854775807,"resource":"r","actions":[],"attributes":[]},{"x":1}]"#,
            #"{"TransactionConditionAdvice":["t"]}"#,
            #"{"advices":{"TransactionConditionAdvice":["t"],"Future":["x"]}}"#,
            #"[{"TransactionConditionAdvice":["t"]}]"#,
        ])
    func decision(body: String) throws {
        let received = try #require(ReceivedAdvice(decision: Array(body.utf8)))
        #expect(received.advice.transactionID == "t")
        #expect(received.form == .json)
        #expect(received.serverOrigin == nil)
    }

    @Test(
        "A body that only looks a little like a decision is left alone",
        arguments: [
            "", "{", "[]", "{}", "null", "1", #""TransactionConditionAdvice""#, #"{"advices":null}"#,
            #"{"advices":[]}"#,
            #"{"advices":{}}"#, #"{"advices":"TransactionConditionAdvice"}"#, #"{"advices":["buy","sell"]}"#,
            #"{"advices":{"stocks":["buy"]}}"#, #"{"advices":{"TransactionConditionAdvice":"t"}}"#,
            #"{"advices":{"TransactionConditionAdvice":["t"],"n":1}}"#,
            #"{"advices":{"TransactionConditionAdvice":[]}}"#,
            #"{"advices":{"TransactionConditionAdvice":["t"]},"actions":"GET"}"#,
            #"{"advices":{"TransactionConditionAdvice":["t"]},"actions":["GET"]}"#,
            #"{"advices":{"TransactionConditionAdvice":["t"]},"attributes":1}"#,
            #"{"advices":{"TransactionConditionAdvice":["t"]},"resource":{}}"#,
            #"{"advices":{"TransactionConditionAdvice":["t"]},"ttl":"0"}"#,
            #"{"advices":{"TransactionConditionAdvice":["t"]},"advices":{"TransactionConditionAdvice":["u"]}}"#,
            #"[1,{"TransactionConditionAdvice":["t"]}]"#, #"[[{"TransactionConditionAdvice":["t"]}]]"#,
            #"{"TransactionConditionAdvice":["t"],"name":"x"}"#, #"{"data":{"TransactionConditionAdvice":["t"]}}"#,
            #"{"tags":["a"]}"#, #"{"TransactionConditionAdvice":["<t>"]}"#, #"{"TransactionConditionAdvice":["t"]} x"#,
        ])
    func notADecision(body: String) {
        #expect(ReceivedAdvice(decision: Array(body.utf8)) == nil)
    }

    @Test("The status says whether a reply can have an advice at all")
    func possible() async throws {
        let location = try Advice(transactionID: Self.id)
            .redirectLocation(server: "https://am.example.com/am", goto: "https://ig.example.com/x", realm: "/")
        let fields: HTTPFields = [
            .wwwAuthenticate: Self.field, .location: location, .contentType: "application/json",
        ]
        for status in 100..<600 {
            for acceptsDecisions in [false, true] {
                var reply = HTTPReply(
                    HTTPResponse(status: .init(code: status), headerFields: fields),
                    body: HTTPBody(#"{"TransactionConditionAdvice":["t"]}"#))
                let found = try await ReceivedAdvice.find(
                    in: &reply, acceptsDecisions: acceptsDecisions, limit: 1 << 10)
                let isPossible = ReceivedAdvice.isPossible(status, acceptsDecisions: acceptsDecisions)
                #expect((found != nil) == isPossible, "\(status), \(acceptsDecisions)")
            }
        }
    }

    @Test("Whatever is changed in a header or a redirect, nothing traps and no other server is taken for ours")
    func mutations() throws {
        let location = try Advice(transactionID: Self.id)
            .redirectLocation(server: "https://am.example.com/am", goto: "https://ig.example.com/x", realm: "/")
        try Mutations.of([location, Self.field], count: 6000) { text throws in
            for received in [try? ReceivedAdvice(location: text), try? ReceivedAdvice(challenges: [text])] {
                guard let received, let server = received.server else { continue }
                #expect(received.serverOrigin == (try Origin(server)))
            }
            _ = ReceivedAdvice(decision: Array(text.utf8))
        }
    }
}
