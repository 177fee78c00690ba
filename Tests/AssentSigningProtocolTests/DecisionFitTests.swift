import AssentCore
import AssentSigningProtocol
import Testing

/// What device, server and verifier all ask of a decision: that it is about the document that its user has seen.
@Suite("Transaction signing: a decision about another document")
struct DecisionFitTests {
    let vectors: Vectors
    let document: TransactionDocument
    let compact: String
    let good: JSONObject
    let sign: KeyThumbprint

    init() throws {
        vectors = try Vectors.load()
        compact = try vectors.compact("txd")
        document = try vectors.message("txd", as: TransactionDocument.self).content
        good = try CompactParts(vectors.compact("decision")).object(1)
        sign = try vectors.publicKey("sign").thumbprint
    }

    private func mismatch(
        _ edit: (inout JSONObject) throws -> Void, document: TransactionDocument? = nil, signer: KeyThumbprint? = nil
    ) throws -> String? {
        var object = good
        try edit(&object)
        let decision = try Decision(plaintext: JSONValue.object(object).serializedBytes())
        return (document ?? self.document).mismatch(with: decision, compact: compact, signer: signer ?? sign)
    }

    /// The hash of what is shown with an answer.
    private func shown(_ status: String, _ match: String?, in document: TransactionDocument? = nil) throws -> JSONValue
    {
        let document = document ?? self.document
        let status = try #require(document.status(named: status))
        return .string(SigningHash.displayed(document.displayed(status: status, match: match)).text)
    }

    @Test(
        "Each member that is another one is named",
        arguments: [
            ("aud", "https://other.example"), ("did", .string(Base64URL.encode([UInt8](repeating: 7, count: 16)))),
            ("sub", "mallory"), ("txn", .string(Base64URL.encode([UInt8](repeating: 7, count: 16)))),
            ("nonce", .string(Base64URL.encode([UInt8](repeating: 7, count: 16)))),
            ("txh", .string(Base64URL.encode([UInt8](repeating: 7, count: 32)))), ("status", "other"),
            ("dsp", .string(Base64URL.encode([UInt8](repeating: 7, count: 32)))),
            ("effect", "deny"), ("reason", "because"),
        ] as [(String, JSONValue)])
    func members(name: String, value: JSONValue) throws {
        #expect(try mismatch({ _ in }) == nil)
        #expect(try mismatch { $0[name] = value } == name)
    }

    @Test("The same document signed once more is another one")
    func otherText() throws {
        let decision = try vectors.message("decision", as: Decision.self).content
        #expect(document.mismatch(with: decision, compact: compact + "A", signer: sign) == "txh")
        #expect(
            document.mismatch(with: decision, compact: compact, signer: try vectors.publicKey("device").thumbprint)
                == "kid")
    }

    @Test("A refusal without the document is no answer to it")
    func blind() throws {
        let blind = try vectors.message("decision.blind", as: Decision.self)
        #expect(document.mismatch(with: blind.content, compact: compact, signer: blind.kid) == "blind")
    }

    @Test("A number belongs to an approval of a document that asks for one, and to nothing else")
    func numbers() throws {
        let device = try vectors.publicKey("device").thumbprint
        #expect(try mismatch { ($0["match"], $0["dsp"]) = (nil, try shown("accept", nil)) } == "match")
        func deny(_ match: String?) throws -> String? {
            try mismatch(
                {
                    ($0["status"], $0["effect"], $0["match"]) = ("deny", "deny", match.map { .string($0) })
                    $0["dsp"] = try shown("deny", match)
                }, signer: device)
        }
        #expect(try deny(nil) == nil)
        #expect(try deny("42") == "match")
        var object = try CompactParts(compact).object(1)
        object["match"] = nil
        let plain = try TransactionDocument(plaintext: JSONValue.object(object).serializedBytes())
        let hash = try shown("accept", "42", in: plain)
        #expect(try mismatch({ $0["dsp"] = hash }, document: plain) == "match")
    }
}
