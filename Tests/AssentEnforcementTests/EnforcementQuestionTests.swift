import AssentCore
import Testing

@testable import AssentEnforcement

@Suite("The question of a gateway elsewhere")
struct EnforcementQuestionTests {
    /// A question with all that one can have.
    static var full: EnforcementQuestion {
        var credentials = EnforcementQuestion.Credentials(proofURL: "https://api.bank.example/pay?a=1&_txid=7")
        credentials.session = Secret("session-token")
        credentials.isCookie = true
        credentials.mayUseCookie = true
        credentials.authorization = [Secret("DPoP access-token")]
        credentials.proofs = ["proof"]
        var requirement = EnforcementQuestion.Requirement()
        requirement.scopes = ["pay"]
        requirement.audience = ["https://api.bank.example"]
        requirement.includesIssuer = true
        requirement.kinds = ["user"]
        requirement.isSenderConstrained = true
        var question = EnforcementQuestion(
            policySet: "bank", resource: "https://api.bank.example/pay?a=1", method: "POST", credentials: credentials,
            requirement: requirement, attempt: "AAAAAAAAAAAAAAAAAAAAAA")
        question.address = "192.0.2.7"
        question.contentType = "application/json"
        question.idempotencyKey = "once"
        question.transaction = "t-1"
        question.content = .whole(Array("{}".utf8))
        question.action = "TRANSFER"
        question.isRecheck = true
        question.isApproved = true
        question.claims = ["email"]
        question.identity = .init(
            audience: "https://pay.internal", issuer: "https://api.bank.example", claims: ["name"])
        return question
    }

    private static func object(_ question: EnforcementQuestion = full) throws -> JSONObject {
        try #require(question.json.object)
    }

    /// Replaces the member at a place such as `credentials.session.token`; `nil` removes it.
    private static func changed(
        _ object: JSONObject, _ place: ArraySlice<String>, to value: JSONValue?
    ) throws -> JSONObject {
        var object = object
        let name = try #require(place.first)
        if place.count == 1 {
            object[name] = value
        } else {
            object[name] = .object(try changed(try #require(object[name]?.object), place.dropFirst(), to: value))
        }
        return object
    }

    private static func read(_ place: String, _ value: JSONValue?) throws -> EnforcementQuestion {
        let path = place.split(separator: ".").map(String.init)
        return try EnforcementQuestion(json: .object(try changed(try object(), path[...], to: value)))
    }

    @Test("What is written is read again, with all members and with as few as there can be")
    func roundTrip() throws {
        let full = Self.full
        #expect(try EnforcementQuestion(json: full.json) == full)
        #expect(try EnforcementQuestion(json: JSONValue.parse(full.json.serializedBytes())) == full)
        var other = full
        other.content = .digest(SHA2.sha256(Array("{}".utf8)))
        other.credentials.isCookie = false
        other.credentials.mayUseCookie = false
        #expect(try EnforcementQuestion(json: other.json) == other)
        other.content = .whole([])
        #expect(try EnforcementQuestion(json: other.json).content == .whole([]))
        let least = EnforcementQuestion(
            policySet: "bank", resource: "https://api.bank.example/", method: "GET",
            credentials: .init(proofURL: "https://api.bank.example/"), requirement: .init(),
            attempt: String(repeating: "a", count: 64))
        #expect(try EnforcementQuestion(json: least.json) == least)
        #expect(least.credentials.isEmpty && !full.credentials.isEmpty)
    }

    @Test(
        "A member that must be there is not guessed",
        arguments: [
            "policySet", "resource", "method", "credentials", "requirement", "attempt", "credentials.proofURL",
            "credentials.session.token", "credentials.session.carrier", "credentials.session.mayUseCookie",
            "requirement.scopes", "requirement.audience", "requirement.includesIssuer", "requirement.kinds",
            "requirement.isSenderConstrained", "identity.audience", "identity.issuer",
        ])
    func missing(place: String) throws {
        let error = #expect(throws: WireError.self) { try Self.read(place, nil) }
        #expect(error?.code == .malformed && error?.detail.contains("missing") == true, "\(place)")
    }

    @Test(
        "A member that is not known is refused, wherever it stands",
        arguments: ["role", "credentials.role", "credentials.session.role", "requirement.role", "identity.role"])
    func unknown(place: String) throws {
        let error = #expect(throws: WireError.self) { try Self.read(place, "admin") }
        #expect(error?.code == .malformed && error?.detail.contains("not known") == true, "\(place)")
    }

    @Test("A member that is there twice is refused, wherever it stands")
    func twice() throws {
        let question = Self.full
        for name in try Self.object().names {
            var object = try Self.object()
            object = JSONObject(object.members + [.init(name: name, value: try #require(object[name]))])
            #expect(throws: WireError(.duplicate, "")) { try EnforcementQuestion(json: .object(object)) }
        }
        for name in ["credentials", "requirement", "identity"] {
            var object = try Self.object(question)
            let inner = try #require(object[name]?.object)
            object[name] = .object(JSONObject(inner.members + [try #require(inner.members.first)]))
            #expect(throws: WireError(.duplicate, ""), "\(name)") { try EnforcementQuestion(json: .object(object)) }
        }
    }

    @Test(
        "A member of another type is refused, and so is null",
        arguments: [
            "policySet", "resource", "method", "address", "credentials", "requirement", "contentType", "idempotencyKey",
            "transaction", "attempt", "body", "action", "recheck", "approved", "claims", "identity",
            "credentials.session",
            "credentials.session.token", "credentials.session.carrier", "credentials.session.mayUseCookie",
            "credentials.authorization", "credentials.proofs", "credentials.proofURL", "requirement.scopes",
            "requirement.audience", "requirement.includesIssuer", "requirement.kinds",
            "requirement.isSenderConstrained", "identity.audience", "identity.issuer", "identity.claims",
        ])
    func types(place: String) throws {
        for value in [JSONValue.null, 7, [[]], ["x": .null]] {
            #expect(throws: WireError.self, "\(place): \(value.serialized())") { try Self.read(place, value) }
        }
        for message in [JSONValue.null, [], "question", 1] {
            #expect(throws: WireError.self) { try EnforcementQuestion(json: message) }
        }
    }

    @Test(
        "A member beyond its bound is refused",
        arguments: [
            ("policySet", 257), ("resource", 8193), ("method", 33), ("action", 257), ("address", 65),
            ("contentType", 16385),
            ("idempotencyKey", 16385), ("transaction", 257), ("attempt", 65), ("credentials.session.token", 16385),
            ("credentials.proofURL", 16385), ("identity.audience", 513), ("identity.issuer", 8193),
        ])
    func bounds(place: String, size: Int) throws {
        let text = { JSONValue.string(String(repeating: "a", count: $0)) }
        #expect(throws: WireError(.tooLarge, ""), "\(place)") { try Self.read(place, text(size)) }
        #expect(throws: Never.self, "\(place)") { try Self.read(place, text(size - 1)) }
        #expect(throws: WireError.self, "\(place)") { try Self.read(place, "") }
        #expect(throws: WireError.self, "\(place)") { try Self.read(place, "a\u{0}b") }
    }

    @Test("Approved is what is looked at again, and nothing else")
    func approved() throws {
        #expect(try Self.read("approved", nil).isApproved == false)
        #expect(throws: WireError(.malformed, "")) { try Self.read("recheck", nil) }
    }

    @Test("A list beyond its bound is refused")
    func lists() throws {
        for (place, count) in [
            ("credentials.authorization", 4), ("credentials.proofs", 4), ("requirement.scopes", 64),
            ("requirement.audience", 64), ("requirement.kinds", 64), ("claims", 64), ("identity.claims", 64),
        ] {
            let list = { JSONValue.array(Array(repeating: "a", count: $0)) }
            #expect(throws: Never.self, "\(place)") { try Self.read(place, list(count)) }
            #expect(throws: WireError(.tooMany, ""), "\(place)") { try Self.read(place, list(count + 1)) }
        }
    }

    @Test("A body is base64url and a digest 32 bytes of it, and only one of them is there")
    func content() throws {
        let digest = JSONValue.string(Base64URL.encode(SHA2.sha256([1])))
        #expect(throws: WireError.self) { try Self.read("bodySHA256", digest) }
        for body in ["a", "!!", "e30=", "ä"] {
            #expect(throws: WireError.self, "\(body)") { try Self.read("body", .string(body)) }
        }
        var object = try Self.object()
        object["body"] = nil
        object["bodySHA256"] = digest
        #expect(try EnforcementQuestion(json: .object(object)).content == .digest(SHA2.sha256([1])))
        for wrong in ["", "AAAA", Base64URL.encode(Array(repeating: 1, count: 33))] {
            object["bodySHA256"] = .string(wrong)
            #expect(throws: WireError.self) { try EnforcementQuestion(json: .object(object)) }
        }
    }

    @Test("An attempt has 128 bits or more")
    func attempts() throws {
        for wrong in ["a", String(repeating: "a", count: 21), String(repeating: "a", count: 21) + "+"] {
            #expect(throws: WireError.self, "\(wrong)") { try Self.read("attempt", .string(wrong)) }
        }
        #expect(throws: Never.self) { try Self.read("attempt", .string(String(repeating: "-", count: 22))) }
    }

    @Test("No description of a question shows its credentials")
    func secrecy() {
        let shown = String(describing: Self.full) + String(reflecting: Self.full)
        #expect(!shown.contains("session-token") && !shown.contains("access-token"))
        #expect(shown.contains("bank"))
    }

    @Test("A question has room for the largest body in base64url, and 64 KiB more")
    func room() {
        for count in [0, 1, 2, 3, 4096, 65_536] {
            let text = Base64URL.encode(Array(repeating: 7, count: count))
            #expect(EnforcementBounds.question(bodyBytes: count) >= text.utf8.count + 65_536)
            #expect(EnforcementBounds.question(bodyBytes: count) <= text.utf8.count + 65_536 + 3)
        }
    }
}
