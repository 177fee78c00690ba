import AssentCore
import Testing

@Suite("Recorded advices", .enabled(if: Fixtures.directory != nil, "ASSENT_FIXTURES is not set"))
struct AdviceFixtureTests {
    private let id = "39dfdd15-59a3-473c-a7fc-ecda3bbc3bc8"
    private let service = Advice.Kind.service(tree: "ConfirmPassword", realm: "/sdk")

    @Test("The strings of the vendor's sample gateway, one of them encoded twice")
    func strings() throws {
        let strings = try Fixtures.json("js/mockapi-stepup-strings.json")
        func text(_ name: String) throws -> String { try #require(strings[name]?.string) }
        #expect(try ReceivedAdvice(challenges: [text("txnHeader")])?.advice.kind == .transaction(id: id))
        #expect(try ReceivedAdvice(challenges: [text("treeHeader")])?.advice.kind == service)
        let redirect = try #require(try ReceivedAdvice(location: text("txnRedirect")))
        #expect(redirect.advice.kind == .transaction(id: id))
        #expect(redirect.goto == "http://localhost:9443/ig")
        #expect(redirect.serverOrigin == (try Origin("http://localhost:9443")))
        #expect(try ReceivedAdvice(location: text("treeRedirect"))?.advice.kind == service)
    }

    @Test("Our writer gives the very header of the vendor's sample gateway")
    func written() throws {
        let strings = try Fixtures.json("js/mockapi-stepup-strings.json")
        let server = "http://localhost:9443/am"
        let transaction = try Advice(transactionID: id)
        #expect(try transaction.challengeFieldValue(server: server, realm: "/") == strings["txnHeader"]?.string)
        let tree = try Advice(tree: "ConfirmPassword", realm: "/sdk")
        #expect(try tree.challengeFieldValue(server: server, realm: "/") == strings["treeHeader"]?.string)
    }

    @Test("The bodies of the vendor's sample policy decisions")
    func decisions() throws {
        let transaction = try Fixtures.json("js/mockapi-authByTxnResponse.json")
        #expect(ReceivedAdvice(decision: transaction)?.advice.kind == .transaction(id: id))
        let tree = try Fixtures.json("js/mockapi-authByTreeResponse.json")
        #expect(ReceivedAdvice(decision: tree)?.advice.kind == service)
    }

    @Test(
        "What the browser SDK sent to AM is what we would send",
        arguments: ["wire-authz-txn-basic-json", "wire-authz-tree-basic-json", "wire-authz-txn-basic-redirect"])
    func wire(name: String) throws {
        let exchanges = try #require(try Fixtures.json("js/\(name).json")["exchanges"]?.array)
        var received: [Advice] = []
        var sent: [Advice] = []
        for exchange in exchanges {
            let url = try #require(exchange["url"]?.string)
            let headers = exchange["responseHeaders"]
            if exchange["status"]?.integer == 401, let field = headers?["www-authenticate"]?.string {
                received.append(try #require(try ReceivedAdvice(challenges: [field])).advice)
            }
            if exchange["status"]?.integer == 307, let location = headers?["location"]?.string {
                received.append(try #require(try ReceivedAdvice(location: location)).advice)
            }
            if exchange["method"]?.string == "POST", let value = try URLText.query(of: url)?.single("authIndexValue"),
                value.hasPrefix("<")
            {
                let advice = try CompositeAdvice.parse(value)
                #expect(CompositeAdvice.xml(advice) == value)
                #expect(url.hasSuffix("authIndexValue=" + PercentEncoding.encode(value)))
                sent.append(advice)
            }
        }
        #expect(!received.isEmpty)
        #expect(Set(received).isSubset(of: Set(sent)))
    }

    @Test("No other recorded body is taken for an advice, and each survives reading and writing")
    func others() throws {
        #expect(!Fixtures.files.isEmpty)
        for file in Fixtures.files where !file.hasPrefix("js/mockapi-authBy") {
            guard let json = try? Fixtures.json(file) else { continue }
            #expect(ReceivedAdvice(decision: json) == nil, "\(file)")
            #expect(try JSONValue.parse(json.serializedBytes()) == json, "\(file)")
        }
    }
}
