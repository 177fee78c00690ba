import AssentCore
import HTTPTypes
import Testing

/// One of the vendor's tests of reading an advice, by its number there, with what is read here.
struct VendorAdvice: Sendable, CustomTestStringConvertible {
    /// The form in which an advice comes.
    enum Source: Sendable {
        case challenge(String)
        case location(String)
        case decision(String)
        /// A reply with this status and field.
        case reply(Int, HTTPField.Name, String)
    }

    /// What is read: an advice, none, or one that is there and cannot be read, so that the reply is handed over.
    enum Reading: Sendable, Equatable {
        case advice(Advice.Kind)
        case nothing
        case unreadable
    }

    let name: String
    let source: Source
    let reading: Reading

    var testDescription: String { name }

    init(_ name: String, _ source: Source, _ reading: Reading) {
        (self.name, self.source, self.reading) = (name, source, reading)
    }

    static let am = "https://am.example.com/am"
    static let serviceXML =
        #"<Advices><AttributeValuePair><Attribute name="AuthenticateToServiceConditionAdvice"/><Value>/:Tree</Value></AttributeValuePair></Advices>"#

    private static let id = "3b8c1b2b-0b3a-4f4e-9b0e-0c0f5a1d2e3f"
    private static let transaction = Reading.advice(.transaction(id: id))
    private static let service = Reading.advice(.service(tree: "Tree", realm: "/"))
    private static let base64Service = Base64URL.encode(Array(serviceXML.utf8))
    private static let encoded =
        "PEFkdmljZXM-PEF0dHJpYnV0ZVZhbHVlUGFpcj48QXR0cmlidXRlIG5hbWU9IlRyYW5zYWN0aW9uQ29uZGl0aW9uQWR2aWNlIi8-PFZhbHVlPmVi"
        + "ZmJiZDMxLTM2ZDctNDg2Zi04OWZkLTdiZjc2OTRkM2U3ZTwvVmFsdWU-PC9BdHRyaWJ1dGVWYWx1ZVBhaXI-PC9BZHZpY2VzPg"
    private static let map =
        "eyJUcmFuc2FjdGlvbkNvbmRpdGlvbkFkdmljZSI6WyI1ODY2OWUxOS00MjVhLTQzMzMtOTFkOC03MDk5NWFmMDY5MjciXX0="
    private static let field = #"SSOADVICE realm="/",advices="\#(map)",am_uri="\#(am)/""#

    private static func xml(_ type: String, _ value: String) -> String {
        "%3CAdvices%3E%3CAttributeValuePair%3E%3CAttribute%20name%3D%22\(type)%22/%3E%3CValue%3E\(value)%3C/Value%3E"
            + "%3C/AttributeValuePair%3E%3C/Advices%3E"
    }

    private static func location(_ value: String) -> String {
        "\(am)/?goto=https://ig.example/products?_txid%3D\(id)&realm=/&authIndexType=composite_advice"
            + "&authIndexValue=\(value)"
    }

    private static let transactionXML = xml("TransactionConditionAdvice", id)

    static let rows: [VendorAdvice] = [
        VendorAdvice("PolicyAdvice01", .decision(#"{"Unheard":["x"],"Other":["y"]}"#), .nothing),
        VendorAdvice("PolicyAdvice01b", .decision(#"{"TransactionConditionAdvice":["\#(id)"]}"#), transaction),
        VendorAdvice(
            "PolicyAdvice02",
            .decision(
                #"{"resource":"https://api.example/x","actions":{},"attributes":{},"advices":{"AuthenticateToServiceConditionAdvice":["/:Tree"]},"ttl":0}"#
            ), service),
        VendorAdvice(
            "PolicyAdvice03",
            .decision(
                #"{"advices":{"AuthenticateToServiceConditionAdvice":["/:Tree"]},"ttl":9223372036854775807,"resource":"https://api.example/x","actions":[],"attributes":[]}"#
            ), service),
        VendorAdvice("PolicyAdvice05", .location(location(transactionXML)), transaction),
        VendorAdvice(
            "PolicyAdvice06", .location(location(xml("AuthenticateToServiceConditionAdvice", "/:Tree"))), service),
        VendorAdvice(
            "PolicyAdvice07",
            .location(
                location(transactionXML).replacing("authIndexType=composite_advice", with: "x=y")), .nothing),
        VendorAdvice("PolicyAdvice07b", .location(location("%3COther%3E%3C/Other%3E")), .unreadable),
        VendorAdvice("Creator legacy", .location(location(transactionXML.replacing("%3C", with: "<"))), transaction),
        VendorAdvice(
            "Creator encoded", .location(location(encoded)),
            .advice(.transaction(id: "ebfbbd31-36d7-486f-89fd-7bf7694d3e7e"))),
        VendorAdvice("Creator invalid", .location(location(String(encoded.dropLast(20)))), .unreadable),
        VendorAdvice(
            "Creator header", .challenge(field), .advice(.transaction(id: "58669e19-425a-4333-91d8-70995af06927"))),
        VendorAdvice(
            "Creator header invalid", .challenge(field.replacing(map, with: map.prefix(80))), .unreadable),
        VendorAdvice("AuthPolicy09", .reply(307, .server, "AM"), .nothing),
        VendorAdvice("AuthPolicy10", .reply(307, .location, location(transactionXML)), transaction),
        // Here an advice is a 307, as gateways send it: any other redirect is the resource's own.
        VendorAdvice("AuthPolicy11", .reply(302, .location, location(transactionXML)), .nothing),
        VendorAdvice("AuthPolicy13", .decision(""), .nothing),
        VendorAdvice(
            "AuthPolicy14",
            .decision(
                #"{"resource":"r","actions":[],"attributes":{},"advices":{"TransactionConditionAdvice":["\#(id)"]},"ttl":9223372036854775807}"#
            ), transaction),
        VendorAdvice(
            "AuthPolicy14b",
            .decision(
                #"[{"resource":"r","actions":[],"attributes":{},"advices":{"TransactionConditionAdvice":["\#(id)"]},"ttl":9223372036854775807}]"#
            ), transaction),
        VendorAdvice("AuthPolicy16", .reply(307, .location, location(base64Service)), service),
        VendorAdvice(
            "AuthPolicy17", .reply(307, .location, location(encoded)),
            .advice(.transaction(id: "ebfbbd31-36d7-486f-89fd-7bf7694d3e7e"))),
        VendorAdvice(
            "AuthPolicy18", .reply(401, .wwwAuthenticate, field),
            .advice(.transaction(id: "58669e19-425a-4333-91d8-70995af06927"))),
    ]

    func read() -> Reading {
        do {
            let received: ReceivedAdvice? =
                switch source {
                case .challenge(let field): try ReceivedAdvice(challenges: [field])
                case .location(let location): try ReceivedAdvice(location: location)
                case .decision(let body): ReceivedAdvice(decision: Array(body.utf8))
                case .reply(let status, let name, let value):
                    try ReceivedAdvice(HTTPResponse(status: .init(code: status), headerFields: [name: value]))
                }
            return received.map { Reading.advice($0.advice.kind) } ?? .nothing
        } catch {
            return .unreadable
        }
    }
}

@Suite("The vendor's own tests of reading an advice, by their numbers")
struct VendorAdviceTests {
    @Test("It is read as there, or the page says why not", arguments: VendorAdvice.rows)
    func row(_ row: VendorAdvice) {
        #expect(row.read() == row.reading)
    }

    @Test("PolicyAdvice02 and 04: type and value give the XML that AM gets, and a type nobody knows is kept")
    func written() throws {
        let advice = try Advice([.init(.service, ["/:Tree"])])
        #expect(CompositeAdvice.xml(advice) == VendorAdvice.serviceXML)
        #expect(advice.transactionID == nil)
        let other = try Advice([.init(.init(rawValue: "Unheard"), ["x"])])
        #expect(other.kind == .other(.init(rawValue: "Unheard"), values: ["x"]))
        #expect(other.entries.allSatisfy { !$0.name.isKnown })
    }

    @Test("PolicyAdvice04b and Advice parse: XML is written as it was read, with a type that nobody knows too")
    func verbatim() throws {
        for xml in [
            VendorAdvice.serviceXML,
            VendorAdvice.serviceXML.replacing("AuthenticateToServiceConditionAdvice", with: "dummyName"),
        ] {
            #expect(try CompositeAdvice.xml(CompositeAdvice.parse(xml)) == xml)
        }
    }

    @Test(
        "What the vendor does not test: a journey in the header, several advices and values, and signs of XML",
        arguments: [
            ["AuthenticateToServiceConditionAdvice": ["/:Tree"]],
            ["AuthenticateToServiceConditionAdvice": ["/:Tree", "/:Other"], "AuthLevelConditionAdvice": ["3"]],
            ["AuthenticateToServiceConditionAdvice": [#"/:A & B <"Tree">"#]],
            ["TransactionConditionAdvice": ["a-1"], "AuthLevelConditionAdvice": ["3"]],
        ] as [JSONValue])
    func untested(json: JSONValue) throws {
        let advice = try Advice(json: json)
        let field = try advice.challengeFieldValue(server: VendorAdvice.am, realm: "/")
        #expect(try ReceivedAdvice(challenges: [field])?.advice == advice)
        for encoding in [Advice.RedirectEncoding.xml, .base64URL] {
            let location = try advice.redirectLocation(
                server: VendorAdvice.am, goto: "https://api.example/x", realm: "/", encoding: encoding)
            #expect(try ReceivedAdvice(location: location)?.advice == advice)
        }
        #expect(ReceivedAdvice(decision: json)?.advice == advice)
    }
}
