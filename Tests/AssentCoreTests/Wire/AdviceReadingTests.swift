import AssentCore
import Testing

@Suite struct AdviceReadingTests {
    private let server = "https://am.example.com/am"

    @Test("The value of a challenge is an advice that remembers which server was named")
    func challenge() throws {
        let json = #"{"TransactionConditionAdvice":["abc"],"AuthLevelConditionAdvice":["3"]}"#
        let encoded = Base64URL.encode(Array(json.utf8))
        let read = try Advice(challenge: #"SSOADVICE realm="/",advices="\#(encoded)",am_uri="\#(server)""#)
        let advice = try #require(read)
        #expect(advice.transactionID == "abc" && advice.server == server)
        #expect(advice.nextToMeet.server == server && advice.nextToMeet.transactionID == nil)
        #expect(try Advice(challenge: #"Bearer realm="x""#) == nil)
        #expect(throws: WireError.self) { try Advice(challenge: #"SSOADVICE realm="/",advices="%%""#) }
    }

    @Test("A redirect to the login page is an advice, any other redirect is none")
    func location() throws {
        let sent = try Advice(transactionID: "abc")
        let url = try sent.redirectLocation(server: server, goto: "https://api.example.com/", realm: "/")
        let advice = try #require(try Advice(location: url))
        #expect(advice.entries == sent.entries && advice.server == server + "/" && sent.server == nil)
        #expect(try Advice(location: "https://elsewhere.example/") == nil)
    }

    @Test("A policy decision is an advice that names no server; other JSON is none")
    func decision() {
        let body = #"[{"resource":"x","actions":{},"advices":{"TransactionConditionAdvice":["abc"]},"ttl":0}]"#
        let advice = Advice(decision: Array(body.utf8))
        #expect(advice?.transactionID == "abc" && advice?.server == nil)
        #expect(Advice(decision: Array(#"{"advices":{"x":["y"]}}"#.utf8)) == nil)
        #expect(Advice(decision: Array("no JSON".utf8)) == nil)
    }
}
