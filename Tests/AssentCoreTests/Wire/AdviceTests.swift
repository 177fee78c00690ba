import AssentCore
import Testing

@Suite("Advice")
struct AdviceTests {
    private let id = "7b8bfd4c-60fe-4271-928d-d09b94496f84"

    @Test(
        "What to do first does not depend on luck: a transaction comes last, a journey first",
        arguments: [
            (#"{"TransactionConditionAdvice":["t"]}"#, .transaction(id: "t")),
            (#"{"AuthenticateToServiceConditionAdvice":["/:Confirm"]}"#, .service(tree: "Confirm", realm: "/")),
            (#"{"AuthenticateToServiceConditionAdvice":["/a/b:My Tree"]}"#, .service(tree: "My Tree", realm: "/a/b")),
            (#"{"AuthenticateToTreeConditionAdvice":["Confirm"]}"#, .service(tree: "Confirm", realm: nil)),
            (#"{"AuthenticateToServiceConditionAdvice":["a:b"]}"#, .service(tree: "a:b", realm: nil)),
            (#"{"AuthLevelConditionAdvice":["3"]}"#, .other(.authLevel, values: ["3"])),
            (#"{"Unheard":["x","y"]}"#, .other(.init(rawValue: "Unheard"), values: ["x", "y"])),
            (
                #"{"TransactionConditionAdvice":["t"],"AuthLevelConditionAdvice":["3"]}"#,
                .other(.authLevel, values: ["3"])
            ),
            (
                #"{"TransactionConditionAdvice":["t"],"AuthLevelConditionAdvice":["3"],"AuthenticateToServiceConditionAdvice":["S"]}"#,
                .service(tree: "S", realm: nil)
            ),
        ] as [(String, Advice.Kind)])
    func kind(json: String, expected: Advice.Kind) throws {
        #expect(try Advice(json: JSONValue.parse(json)).kind == expected)
    }

    @Test("What must be met first leaves the transaction out unless there is nothing else")
    func nextToMeet() throws {
        let both = try Advice([.init(.transaction, ["t"]), .init(.authLevel, ["3"])])
        #expect(try both.nextToMeet == Advice([.init(.authLevel, ["3"])]))
        let one = try Advice(transactionID: "t")
        #expect(one.nextToMeet == one)
    }

    @Test("Order, several values and names that nobody knows are kept; one name's entries are joined")
    func kept() throws {
        let advice = try Advice([
            .init(.init(rawValue: "Z"), ["1", "2"]), .init(.authLevel, ["3"]), .init(.init(rawValue: "Z"), ["4"]),
        ])
        #expect(advice.entries.map(\.name.rawValue) == ["Z", "AuthLevelConditionAdvice"])
        #expect(advice[.init(rawValue: "Z")] == ["1", "2", "4"])
        #expect(advice.transactionID == nil)
        #expect(advice[.transaction] == [])
    }

    @Test("Transaction ids that were joined by white space are taken apart, names of journeys are not")
    func joinedValues() throws {
        #expect(try Advice([.init(.transaction, [" b  a\n"])])[.transaction] == ["b", "a"])
        #expect(try Advice([.init(.service, ["My Tree"])])[.service] == ["My Tree"])
    }

    @Test(
        "An advice that could not be carried further is refused",
        arguments: [
            [], [.init(.transaction, [])], [.init(.transaction, [""])], [.init(.transaction, ["  "])],
            [.init(.transaction, ["a<b"])], [.init(.transaction, ["a&b"])], [.init(.transaction, ["a,b"])],
            [.init(.transaction, ["a=b"])], [.init(.transaction, ["a\"b"])], [.init(.transaction, ["ä"])],
            [.init(.service, ["a\u{1B}[0m"])], [.init(.service, [""])], [.init(.service, ["/alpha:"])],
            [.init(.init(rawValue: ""), ["a"])], [.init(.init(rawValue: "a b"), ["a"])],
            [.init(.init(rawValue: "a\"/><x"), ["a"])],
            [.init(.init(rawValue: String(repeating: "a", count: 129)), ["a"])],
            [.init(.transaction, [String(repeating: "a", count: 257)])],
        ] as [[Advice.Entry]])
    func refused(entries: [Advice.Entry]) {
        #expect(throws: WireError(.malformed, "")) { try Advice(entries) }
    }

    @Test("Names, values and their size are bounded")
    func bounds() throws {
        let entries = (0...Advice.entryLimit).map { Advice.Entry(.init(rawValue: "N\($0)"), ["v"]) }
        #expect(try Advice(Array(entries.dropLast())).entries.count == Advice.entryLimit)
        #expect(throws: WireError(.tooMany, "")) { try Advice(entries) }
        let values = (0...Advice.valueLimit).map { "v\($0)" }
        #expect(throws: WireError(.tooMany, "")) { try Advice([.init(.service, values)]) }
        let long = String(repeating: "v", count: Advice.valueByteLimit + 1)
        #expect(throws: WireError(.tooLarge, "")) { try Advice([.init(.service, [long])]) }
    }

    @Test(
        "JSON of another shape is no advice",
        arguments: [
            "{}", "[]", "null", #""x""#, #"{"TransactionConditionAdvice":"x"}"#, #"{"TransactionConditionAdvice":[1]}"#,
            #"{"TransactionConditionAdvice":[]}"#, #"{"TransactionConditionAdvice":["x",null]}"#,
            #"{"TransactionConditionAdvice":["x"],"other":{}}"#,
        ])
    func otherJSON(text: String) throws {
        let json = try JSONValue.parse(text)
        #expect(throws: WireError(.malformed, "")) { try Advice(json: json) }
    }

    @Test("The map in base 64 is that of the vendor's sample")
    func base64Map() throws {
        let advice = try Advice(transactionID: "39dfdd15-59a3-473c-a7fc-ecda3bbc3bc8")
        #expect(
            advice.base64Map
                == "eyJUcmFuc2FjdGlvbkNvbmRpdGlvbkFkdmljZSI6WyIzOWRmZGQxNS01OWEzLTQ3M2MtYTdmYy1lY2RhM2JiYzNiYzgiXX0=")
    }

    @Test("The map in base 64 reads the same in both alphabets, whatever is in it")
    func base64MapAlphabets() throws {
        for text in ["a>", "b?c", "~~~~", "é", "漢字😀", ">?~>?~>?~", "x>", "xx>", "xxx?", "a/b+c-d_e"] {
            let advice = try Advice([.init(.service, [text, "y" + text])])
            let encoded = advice.base64Map
            #expect(!encoded.contains { "+/-_".contains($0) })
            let challenge = try advice.challengeFieldValue(server: "https://am.example.com/am", realm: "/")
            #expect(try ReceivedAdvice(challenges: [challenge])?.advice == advice)
        }
    }

    @Test("The challenge is written the way that clients which split at commas can read")
    func challenge() throws {
        let advice = try Advice(transactionID: id)
        let field = try advice.challengeFieldValue(server: "https://am.example.com/am", realm: "/alpha")
        #expect(
            field == "SSOADVICE realm=\"/alpha\",advices=\"\(advice.base64Map)\",am_uri=\"https://am.example.com/am\"")
        let parts = field.dropFirst("SSOADVICE ".count).split(separator: ",")
        #expect(parts.map { $0.prefix { $0 != "=" } } == ["realm", "advices", "am_uri"])
    }

    @Test(
        "A challenge that some client would misread is not written",
        arguments: [
            ("https://am.example.com/a,b", "/"), ("https://am.example.com/am", "/a,b"), ("/am", "/"), ("", "/"),
            ("https://am.example.com/am", "/\"x"), ("https://am.example.com/am", "/\\"),
            ("https://am.example.com/am", "/ä"), ("https://am.example.com/am", "/\r\nX: y"),
        ])
    func unwritableChallenge(server: String, realm: String) throws {
        let advice = try Advice(transactionID: id)
        #expect(throws: WireError(.malformed, "")) {
            try advice.challengeFieldValue(server: server, realm: realm)
        }
    }

    @Test("The redirect brings the id back to where the browser wanted to go", arguments: [true, false])
    func redirect(isXML: Bool) throws {
        let advice = try Advice(transactionID: id)
        let location = try advice.redirectLocation(
            server: "https://am.example.com/am", goto: "https://api.example.com/transfers?a=1&b=2%20", realm: "/alpha",
            encoding: isXML ? .xml : .base64URL)
        #expect(location.hasPrefix("https://am.example.com/am/?goto=https%3A%2F%2Fapi.example.com%2Ftransfers%3Fa"))
        let received = try #require(try ReceivedAdvice(location: location))
        #expect(received.advice == advice)
        #expect(received.goto == "https://api.example.com/transfers?a=1&b=2%20&_txid=\(id)")
        #expect(received.realm == "/alpha")
        #expect(received.serverOrigin == (try Origin("https://am.example.com")))
        #expect(received.server == "https://am.example.com/am/")
        #expect(received.form == .redirect)
    }

    @Test("A redirect for a journey brings no id back")
    func redirectForService() throws {
        let advice = try Advice(tree: "Confirm", realm: "/alpha")
        let location = try advice.redirectLocation(server: "https://am/", goto: "https://api/x", realm: "/alpha")
        #expect(location.hasPrefix("https://am/?goto=https%3A%2F%2Fapi%2Fx&realm=%2Falpha&authIndexType="))
        #expect(throws: WireError(.malformed, "")) {
            try advice.redirectLocation(server: "https://am/?x", goto: "https://api/x", realm: "/")
        }
        #expect(throws: WireError(.malformed, "")) {
            try advice.redirectLocation(server: "https://am/", goto: "/x", realm: "/")
        }
    }
}
