import AssentCore
import AssentTesting
import Testing

@Suite("Challenge")
struct ChallengeTests {
    @Test("The example of RFC 9110 §11.6.1 is two challenges")
    func rfcExample() throws {
        let text = #"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#
        let challenges = try Challenge.parse(text)
        #expect(
            challenges == [
                Challenge(scheme: "Basic", parameters: [.init(name: "realm", value: "simple")]),
                Challenge(
                    scheme: "Newauth",
                    parameters: [
                        .init(name: "realm", value: "apps"), .init(name: "type", value: "1"),
                        .init(name: "title", value: #"Login to "apps""#),
                    ]),
            ])
    }

    @Test(
        "Well-formed fields are read",
        arguments: [
            ("", []),
            (" , ,", []),
            ("Negotiate", ["Negotiate"]),
            ("Negotiate, Basic realm=\"x\"", ["Negotiate", "Basic realm=\"x\""]),
            ("Negotiate YII=", ["Negotiate YII="]),
            ("Negotiate YII==, NTLM", ["Negotiate YII==", "NTLM"]),
            ("Bearer abc-._~+/==  ,Digest a=b", ["Bearer abc-._~+/==", "Digest a=\"b\""]),
            ("Basic REALM = \"x\"", ["Basic realm=\"x\""]),
            ("Basic realm\t=\t\"a,b=c\"\t,\tcharset=utf-8", ["Basic realm=\"a,b=c\",charset=\"utf-8\""]),
            ("A a=1,, ,b=2 , B", ["A a=\"1\",b=\"2\"", "B"]),
            ("A a=\"\"", ["A a=\"\""]),
            ("A a=\"\\\\\\\"x\"", ["A a=\"\\\\\\\"x\""]),
            ("A a=\"é\"", ["A a=\"é\""]),
            ("DPoP algs=\"ES256 PS256\", error=use_dpop_nonce", ["DPoP algs=\"ES256 PS256\",error=\"use_dpop_nonce\""]),
        ] as [(String, [String])])
    func wellFormed(text: String, expected: [String]) throws {
        #expect(try Challenge.parse(text).map { try $0.fieldValue() } == expected)
    }

    @Test(
        "Malformed fields are refused",
        arguments: [
            "=", "\"", "Basic realm=\"x", "Basic realm=\"x\\", "Basic realm=\"a\u{1}\"", "Basic realm=\"a\u{7F}\"",
            "Basic realm=,a=b", "Basic realm=\"x\" a=b", "Basic realm=\"x\"y", "realm=\"x\"",
            "a=b, Basic",
            "Basic realm=x;y", "Basic@", "Basic a b", "Basic abc=, a=b", "Basic (", "Basic a=\"b\", ;", "Bäsic realm=x",
            "Basic realm=\"x\"\r\nX: y", "A \u{0}",
        ])
    func malformed(text: String) {
        #expect(throws: WireError(.malformed, "")) { try Challenge.parse(text) }
    }

    @Test("A parameter that occurs twice in one challenge is refused, in two challenges it is fine")
    func duplicates() throws {
        #expect(throws: WireError(.duplicate, "")) { try Challenge.parse("A realm=x, b=y, Realm=z") }
        #expect(try Challenge.parse("A realm=x, B realm=y").count == 2)
    }

    @Test("Size, number of challenges and number of parameters are bounded")
    func bounds() throws {
        let longest = "A a=\"" + String(repeating: "x", count: Challenge.byteLimit - 6) + "\""
        #expect(try Challenge.parse(longest).count == 1)
        #expect(throws: WireError(.tooLarge, "")) { try Challenge.parse(longest + " ") }
        let parameters = (0..<Challenge.parameterLimit).map { "p\($0)=1" }
        #expect(try Challenge.parse("A " + parameters.joined(separator: ",")).first?.parameters.count == 64)
        #expect(throws: WireError(.tooMany, "")) {
            try Challenge.parse("A x=1, B " + parameters.joined(separator: ","))
        }
        let challenges = Array(repeating: "A", count: Challenge.challengeLimit)
        #expect(try Challenge.parse(challenges.joined(separator: ",")).count == 16)
        #expect(throws: WireError(.tooMany, "")) {
            try Challenge.parse((challenges + ["A"]).joined(separator: ","))
        }
    }

    @Test("Backslashes between marks hide no row of them that is slow to compare")
    func marks() {
        for (count, isTaken) in [(MarksInARow.limit, true), (MarksInARow.limit + 1, false)] {
            let row = String(repeating: "\\\u{301}", count: count)
            #expect(((try? Challenge.parse("A a=\"e\(row)\"")) != nil) == isTaken)
        }
    }

    @Test("Scheme and parameter names are found whatever their case")
    func caseInsensitive() throws {
        let challenge = try #require(try Challenge.parse("ssoAdvice AM_URI=x").first)
        #expect(challenge.isScheme("SSOADVICE"))
        #expect(!challenge.isScheme("SSOADVICES"))
        #expect(challenge["am_uri"] == "x")
        #expect(challenge["Am_Uri"] == "x")
        #expect(challenge["realm"] == nil)
    }

    @Test(
        "What could not be read back is not written",
        arguments: [
            Challenge(scheme: "A B"), Challenge(scheme: ""), Challenge(scheme: "A", token68: "a b"),
            Challenge(scheme: "A", token68: ""),
            Challenge(scheme: "A", token68: "x", parameters: [.init(name: "a", value: "b")]),
            Challenge(scheme: "A", parameters: [.init(name: "a b", value: "c")]),
            Challenge(scheme: "A", parameters: [.init(name: "a", value: "c\r\nX: y")]),
        ])
    func unwritable(challenge: Challenge) {
        #expect(throws: WireError(.malformed, "")) { try challenge.fieldValue() }
    }

    @Test(
        "Whatever is changed in a field, it is read or refused, and what is read is written so that it reads the same")
    func mutations() throws {
        let seeds = [
            #"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#,
            #"SSOADVICE realm="/",advices="eyJUIjpbIjEiXX0=",am_uri="https://am.example.com/am""#,
            "Negotiate YII==, NTLM, Digest a=b , c = \"d\"",
        ]
        try Mutations.of(seeds, count: 6000) { text throws in
            guard let challenges = try? Challenge.parse(text) else { return }
            let written = challenges.compactMap { try? $0.fieldValue() }.joined(separator: ", ")
            #expect(try Challenge.parse(written).count <= challenges.count)
            if challenges.allSatisfy({ (try? $0.fieldValue()) != nil }) {
                #expect(try Challenge.parse(written) == challenges)
            }
        }
    }
}
