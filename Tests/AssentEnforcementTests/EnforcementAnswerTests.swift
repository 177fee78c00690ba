import AssentCore
import Testing

@testable import AssentEnforcement

@Suite("The answer to a gateway elsewhere")
struct EnforcementAnswerTests {
    private static let attempt = "AAAAAAAAAAAAAAAAAAAAAA"

    /// One of each, with all members.
    static func every() throws -> [EnforcementAnswer] {
        var grant = EnforcementAnswer.Grant()
        grant.user = .init(id: "u-1", name: "ana")
        grant.user?.claims = ["email": "ana@bank.example"]
        grant.scopes = ["accounts", "openid"]
        grant.transaction = "t-1"
        grant.identity = Secret("signed-token")
        grant.newNonce = "nonce"
        var kept = EnforcementAnswer.Grant()
        kept.keepSeconds = 60
        kept.scopes = []
        var advised = EnforcementAnswer.Advised(try Advice(transactionID: "t-1"))
        advised.acrValues = ["urn:bank:code"]
        advised.hasToken = true
        advised.newNonce = "nonce"
        var denied = EnforcementAnswer.Denial(.request, code: "tooManyRequests", detail: "Too many.")
        denied.newNonce = "nonce"
        return [
            .granted(grant), .granted(kept), .granted(.init()), .advised(advised),
            .alreadyTaken(transaction: "t-1", outcome: .answered(status: 201), newNonce: "nonce"),
            .alreadyTaken(transaction: "t-1", outcome: nil, newNonce: nil), .denied(denied),
            .denied(.init(.noSession)), .denied(.init(.forbidden)), .denied(.init(.tokenKind)),
            .denied(.init(.unavailable)), .denied(.init(.outcomeUnknown)), .refused(.cookie),
            .refused(.token(scheme: .dpop, error: "use_dpop_nonce", detail: "A nonce is needed.", nonce: "n")),
            .refused(.token(scheme: .bearer, error: nil, detail: "No token.", nonce: nil)),
            .needBody(.whole, limit: 65_536), .needBody(.digest, limit: 1),
        ]
    }

    private static func read(_ json: JSONValue) throws -> EnforcementAnswer {
        try EnforcementAnswer(json: json, to: attempt)
    }

    @Test("What is written is read again, as JSON's text too")
    func roundTrip() throws {
        for answer in try Self.every() {
            let json = answer.json(to: Self.attempt)
            #expect(try Self.read(json) == answer)
            #expect(try Self.read(try JSONValue.parse(json.serializedBytes())) == answer)
        }
    }

    @Test("An answer to another attempt is not taken")
    func others() throws {
        for answer in try Self.every() {
            let json = answer.json(to: String(repeating: "b", count: 22))
            #expect(throws: WireError(.refused, "")) { try Self.read(json) }
        }
    }

    @Test("An answer with a member too many, one that is there twice or one of another type grants nothing")
    func strict() throws {
        for answer in try Self.every() {
            let object = try #require(answer.json(to: Self.attempt).object)
            var more = object
            more["role"] = "admin"
            #expect(throws: WireError.self) { try Self.read(.object(more)) }
            for member in object.members {
                let twice = JSONObject(object.members + [member])
                #expect(throws: WireError(.duplicate, "")) { try Self.read(.object(twice)) }
                for value in [JSONValue.null, [[]], -1] {
                    var other = object
                    other[member.name] = value
                    #expect(throws: WireError.self, "\(member.name): \(value.serialized())") {
                        try Self.read(.object(other))
                    }
                }
            }
        }
        for message in [JSONValue.null, [], "granted", ["answer": "granted"], [:]] {
            #expect(throws: WireError.self) { try Self.read(message) }
        }
    }

    @Test(
        "A member that must be there is not guessed",
        arguments: [
            ("granted", ["keepSeconds"]), ("advised", ["advice", "acrValues", "hasToken"]),
            ("alreadyTaken", ["transaction"]), ("denied", ["reason"]), ("refusedToken", ["scheme", "detail"]),
            ("needBody", ["form", "limit"]),
        ] as [(String, [String])])
    func missing(kind: String, names: [String]) throws {
        let answers = try Self.every().map { $0.json(to: Self.attempt) }.filter { $0["answer"]?.string == kind }
        try #require(!answers.isEmpty)
        for answer in answers {
            for name in names + ["answer", "attempt"] {
                var object = try #require(answer.object)
                object[name] = nil
                #expect(throws: WireError.self, "\(kind) without \(name)") { try Self.read(.object(object)) }
            }
        }
    }

    @Test("An answer that is not known grants nothing, and neither does a word that is not known in one")
    func unknown() throws {
        for (name, value) in [
            ("answer", "allowed"), ("reason", "perhaps"), ("scheme", "Basic"), ("form", "half"),
            ("limit", 0), ("limit", .integer(EnforcementBounds.largestBody + 1)), ("keepSeconds", 86_401),
            ("advice", [:]), ("outcome", ["state": "paid"]), ("outcome", ["state": "unknown", "status": 200]),
            ("outcome", ["state": "answered"]),
        ] as [(String, JSONValue)] {
            for answer in try Self.every() {
                var object = try #require(answer.json(to: Self.attempt).object)
                guard object[name] != nil else { continue }
                object[name] = value
                #expect(throws: WireError.self, "\(name)") { try Self.read(.object(object)) }
            }
        }
    }

    @Test("An answer that spent a transaction cannot say that it may be kept")
    func kept() throws {
        var object = try #require(try Self.every()[0].json(to: Self.attempt).object)
        object["keepSeconds"] = 1
        #expect(throws: WireError.self) { try Self.read(.object(object)) }
        object["transaction"] = nil
        #expect(throws: Never.self) { try Self.read(.object(object)) }
    }

    @Test("A statement of an outcome is read as it is written, and says what became of the request")
    func outcomes() throws {
        for outcome in [EnforcementOutcome.answered(status: 201), .notForwarded, .unknown] {
            let statement = OutcomeStatement(transaction: "t-1", attempt: Self.attempt, outcome: outcome)
            #expect(try OutcomeStatement(json: statement.json) == statement)
            let object = try #require(statement.json.object)
            #expect(throws: WireError.self) {
                try OutcomeStatement(json: .object(JSONObject(object.members + [.init(name: "x", value: 1)])))
            }
            for name in object.names {
                var less = object
                less[name] = nil
                #expect(throws: WireError.self) { try OutcomeStatement(json: .object(less)) }
            }
        }
        for outcome in [EnforcementOutcome.taken, .forwarded] {
            let statement = OutcomeStatement(transaction: "t-1", attempt: Self.attempt, outcome: outcome)
            #expect(throws: WireError(.refused, "")) { try OutcomeStatement(json: statement.json) }
        }
    }
}
