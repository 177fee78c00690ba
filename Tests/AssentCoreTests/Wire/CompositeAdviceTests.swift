import AssentCore
import Testing

@Suite("CompositeAdvice")
struct CompositeAdviceTests {
    private static let sample =
        "PEFkdmljZXM-PEF0dHJpYnV0ZVZhbHVlUGFpcj48QXR0cmlidXRlIG5hbWU9IlRyYW5zYWN0aW9uQ29uZGl0aW9uQWR2aWNlIi8-PFZhbHVlPmVi"
        + "ZmJiZDMxLTM2ZDctNDg2Zi04OWZkLTdiZjc2OTRkM2U3ZTwvVmFsdWU-PC9BdHRyaWJ1dGVWYWx1ZVBhaXI-PC9BZHZpY2VzPg"
    private static let xml =
        #"<Advices><AttributeValuePair><Attribute name="TransactionConditionAdvice"/><Value>"#
        + "ebfbbd31-36d7-486f-89fd-7bf7694d3e7e</Value></AttributeValuePair></Advices>"

    private static func pair(_ value: String, name: String = "N") -> String {
        "<AttributeValuePair><Attribute name=\"\(name)\"/><Value>\(value)</Value></AttributeValuePair>"
    }

    @Test("The base64url sample of newer gateways and the XML of older ones say the same, both ways")
    func samples() throws {
        let advice = try Advice(transactionID: "ebfbbd31-36d7-486f-89fd-7bf7694d3e7e")
        #expect(CompositeAdvice.xml(advice) == Self.xml)
        #expect(CompositeAdvice.base64URL(advice) == Self.sample)
        #expect(try CompositeAdvice.parse(Self.sample) == advice)
        #expect(try CompositeAdvice.parse(Self.sample + "==") == advice)
        #expect(try CompositeAdvice.parse(Self.xml) == advice)
        #expect(try CompositeAdvice.parse(PercentEncoding.encode(Self.xml)) == advice)
    }

    @Test(
        "Well-formed variants are read",
        arguments: [
            (
                " <Advices>\n<AttributeValuePair >\t<Attribute\n name = 'N' />\r\n<Value> v </Value >\n</AttributeValuePair>\n</Advices >\n",
                ["N": ["v"]]
            ),
            (
                "<Advices><AttributeValuePair><Attribute name=\"N\"></Attribute><Value>v</Value></AttributeValuePair></Advices>",
                ["N": ["v"]]
            ),
            (
                "<Advices><AttributeValuePair><Attribute name=\"N\"/><Value>a</Value><Value>b</Value></AttributeValuePair></Advices>",
                ["N": ["a", "b"]]
            ),
            ("<Advices>\(pair("a"))\(pair("b"))\(pair("c", name: "M"))</Advices>", ["N": ["a", "b"], "M": ["c"]]),
            ("<Advices>\(pair("&lt;&gt;&amp;&quot;&apos;&#65;&#x42;&#x1F600;"))</Advices>", ["N": ["<>&\"'AB😀"]]),
            ("<Advices>\(pair("é a>b"))</Advices>", ["N": ["é a>b"]]),
            (
                "<Advices>\(pair("b a", name: "TransactionConditionAdvice"))</Advices>",
                ["TransactionConditionAdvice": ["b", "a"]]
            ),
        ] as [(String, [String: [String]])])
    func wellFormed(text: String, expected: [String: [String]]) throws {
        let advice = try CompositeAdvice.parse(text)
        #expect(Dictionary(uniqueKeysWithValues: advice.entries.map { ($0.name.rawValue, $0.values) }) == expected)
    }

    @Test(
        "Everything outside the fixed grammar is refused",
        arguments: [
            "", " ", "x", "<", "<Advices", "<Advices>", "<Advices/>", "<Advices></Advices>", "<advices></advices>",
            "<Advices></Advices>x", "<Advices>x</Advices>", "\u{FEFF}<Advices>\(pair("a"))</Advices>",
            "<?xml version=\"1.0\"?><Advices>\(pair("a"))</Advices>",
            "<!DOCTYPE a [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><Advices>\(pair("&e;"))</Advices>",
            "<Advices><!-- c -->\(pair("a"))</Advices>", "<Advices>\(pair("<![CDATA[a]]>"))</Advices>",
            "<Advices xmlns=\"x\">\(pair("a"))</Advices>", "<Advices>\(pair("&e;"))</Advices>",
            "<Advices>\(pair("&amp"))</Advices>", "<Advices>\(pair("&#0;"))</Advices>",
            "<Advices>\(pair("&#x1B;"))</Advices>", "<Advices>\(pair("&#xD800;"))</Advices>",
            "<Advices>\(pair("&#x110000;"))</Advices>", "<Advices>\(pair("&#99999999999;"))</Advices>",
            "<Advices>\(pair("&#+65;"))</Advices>", "<Advices>\(pair("&#;"))</Advices>",
            "<Advices>\(pair("&;"))</Advices>",
            "<Advices>\(pair(""))</Advices>", "<Advices>\(pair("  "))</Advices>",
            "<Advices>\(pair("a\u{0}b"))</Advices>",
            "<Advices>\(pair("a<b/>"))</Advices>", "<Advices>\(pair("a", name: ""))</Advices>",
            "<Advices>\(pair("a", name: "x y"))</Advices>",
            "<Advices><AttributeValuePair><Attribute name=\"N\"/></AttributeValuePair></Advices>",
            "<Advices><AttributeValuePair><Value>v</Value><Attribute name=\"N\"/></AttributeValuePair></Advices>",
            "<Advices><AttributeValuePair><Attribute name=N/><Value>v</Value></AttributeValuePair></Advices>",
            "<Advices><AttributeValuePair><Attribute name=\"N'/><Value>v</Value></AttributeValuePair></Advices>",
            "<Advices><AttributeValuePair><Attribute id=\"1\" name=\"N\"/><Value>v</Value></AttributeValuePair></Advices>",
            "<Advices><AttributeValuePair><Attributename=\"N\"/><Value>v</Value></AttributeValuePair></Advices>",
            "<Advices><AttributeValuePair><Attribute name=\"N\"/><Value>v</AttributeValuePair></Advices>",
            "<Advices><AttributeValuePair><Attribute name=\"N\"/><Value/></AttributeValuePair></Advices>",
            "< Advices>\(pair("a"))</Advices>", "%3CAdvices%3", "%ff%fe", "_____w", "PEFkdmljZXM",
        ])
    func malformed(text: String) {
        #expect(throws: WireError(.malformed, "")) { try CompositeAdvice.parse(text) }
    }

    @Test("Size and number of parts are bounded, also of what is encoded")
    func bounds() {
        let space = String(repeating: " ", count: CompositeAdvice.byteLimit)
        for text in [Self.xml + space, Base64URL.encode(Array((Self.xml + space).utf8)), "%3C" + space + space + space]
        {
            #expect(throws: WireError(.tooLarge, "")) { try CompositeAdvice.parse(text) }
        }
        let pairs = (0...Advice.entryLimit).map { Self.pair("v", name: "N\($0)") }.joined()
        #expect(throws: WireError(.tooMany, "")) { try CompositeAdvice.parse("<Advices>\(pairs)</Advices>") }
        let values = String(repeating: "<Value>v</Value>", count: Advice.valueLimit + 1)
        #expect(throws: WireError(.tooMany, "")) {
            try CompositeAdvice.parse(
                "<Advices><AttributeValuePair><Attribute name=\"N\"/>\(values)</AttributeValuePair></Advices>")
        }
    }

    @Test(
        "Any advice survives writing and reading",
        arguments: ["a", "/sdk:ConfirmPassword", "a & b < c > d \" e ' f", "</Value>", "&amp;", "漢字 😀", "]]>", "%3C"])
    func roundTrip(value: String) throws {
        let advice = try Advice([.init(.service, [value, "x"]), .init(.authLevel, ["1"])])
        #expect(try CompositeAdvice.parse(CompositeAdvice.xml(advice)) == advice)
        #expect(try CompositeAdvice.parse(CompositeAdvice.base64URL(advice)) == advice)
    }

    @Test("Whatever is changed, it is refused or read as what writing gives back")
    func mutations() throws {
        let seeds = [
            Self.xml, Self.sample, PercentEncoding.encode(Self.xml),
            "<Advices>\(Self.pair("&lt;&#65;&#x42;"))\(Self.pair("b", name: "M"))</Advices>",
        ]
        try Mutations.of(seeds, count: 6000) { text throws in
            guard let advice = try? CompositeAdvice.parse(text) else { return }
            #expect(try CompositeAdvice.parse(CompositeAdvice.xml(advice)) == advice)
        }
    }
}
