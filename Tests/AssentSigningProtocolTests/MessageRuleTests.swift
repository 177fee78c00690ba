import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Testing

/// Members that are fine each for itself, and not together: what a signer could write who has the right key.
@Suite("Transaction signing: members that do not fit together")
struct MessageRuleTests {
    /// What is changed in which message of the page, and the member that the refusal names.
    struct Rule: Sendable, CustomTestStringConvertible {
        let message: String
        let changes: [String: JSONValue?]
        let member: String

        var testDescription: String { "\(message), \(changes.keys.sorted().joined(separator: ", ")) → \(member)" }

        init(_ message: String, _ changes: [String: JSONValue?], _ member: String) {
            (self.message, self.changes, self.member) = (message, changes, member)
        }
    }

    private static let id = JSONValue.string(Base64URL.encode([UInt8](repeating: 77, count: 16)))
    private static let hash = JSONValue.string(Base64URL.encode([UInt8](repeating: 77, count: 32)))
    private static let point = JSONValue.string(Base64URL.encode([2] + [UInt8](repeating: 7, count: 48)))
    private static let absent = JSONValue?.none

    private static let enrolments = [
        Rule("enrolled", ["state": "ACTIVE"], "state"), Rule("enrolled", ["serial": "10 23"], "serial"),
        Rule("enrolled", ["serial": "1002a"], "serial"), Rule("record", ["prev": hash], "prev"),
        Rule("record", ["seq": 1], "prev"), Rule("cert", ["min": 8], "min"),
        Rule("cert", ["exp": 1_789_913_600], "exp"),
        Rule("cert", ["exp": .integer(1_789_913_600 + 400 * 86400 + 1)], "exp"),
        Rule("invite", ["exp": 1_790_000_000], "exp"), Rule("invite", ["exp": 1_790_000_901], "exp"),
    ]

    private static let passwords =
        ["unl", "n", "tries", "spare", "wait"].map { Rule("eval.unlock", [$0: absent], "purpose") }
        + [
            Rule("eval.unlock", ["left": 1], "purpose"), Rule("eval.enrol", ["left": absent], "purpose"),
            Rule("eval.enrol", ["unl": id], "purpose"), Rule("eval.enrol", ["n": 1], "purpose"),
            Rule("eval.enrol", ["tries": 1], "purpose"), Rule("eval.enrol", ["spare": 1], "purpose"),
            Rule("eval.enrol", ["wait": 0], "purpose"), Rule("eval.unlock", ["purpose": "change"], "purpose"),
            Rule("change", ["to": 2], "to"), Rule("change", ["from": 1], "to"), Rule("change", ["unl": absent], "to"),
            Rule("change", ["pk": point], "to"), Rule("change", ["step": "commit"], "to"),
            Rule("change.commit", ["pk": absent], "to"), Rule("change.commit", ["unl": id], "to"),
            Rule("login", ["exp": 1_790_001_091], "exp"), Rule("login", ["iat": 1_790_001_031], "exp"),
            Rule("login.implicit", ["exp": 1_790_001_030], "exp"),
        ]

    private static let transactions = [
        Rule("tds", ["h": absent], "h"), Rule("tds", ["claim": true], "h"), Rule("tds.claim", ["h": id], "h"),
        Rule("receipt", ["keyState": "RETIRED"], "keyState"), Rule("receipt", ["amr": ["pin"]], "amr"),
        Rule("receipt", ["state": "DENIED"], "state"), Rule("receipt", ["effect": "deny"], "state"),
        Rule("decision", ["match": "4x"], "match"), Rule("decision", ["match": " 4"], "match"),
        Rule("decision.blind", ["nonce": id], "blind"), Rule("decision.blind", ["txh": hash], "blind"),
        Rule("decision.blind", ["dsp": hash], "blind"), Rule("decision.blind", ["match": "42"], "blind"),
        Rule("decision.blind", ["unl": id], "blind"), Rule("decision.blind", ["status": "deny"], "blind"),
        Rule("decision.blind", ["effect": "deny"], "blind"),
        Rule("decision.blind", ["status": "approve", "effect": "approve"], "blind"),
        Rule("decision.blind", ["status": "cancel", "effect": "cancel"], "blind"),
    ]

    /// What is said twice, or in a second way, or is not of its form.
    private static let forms = [
        Rule("tds", ["claim": false], "claim"), Rule("decision", ["blind": false], "blind"),
        Rule("receipt", ["match": false], "match"), Rule("list", ["notices": []], "notices"),
        Rule("record", ["keys": [hash, hash]], "keys"), Rule("record", ["by": ["invite", "invite"]], "by"),
        Rule("receipt", ["amr": ["pop", "pop"]], "amr"), Rule("start", ["modes": ["device", "device"]], "modes"),
        Rule("receipt", ["audit": "5E6A0E2C-5A44-4C2E-8A63-0B2AC0B1F3F2"], "audit"),
        Rule("receipt", ["audit": "5e6a0e2c05a44-4c2e-8a63-0b2ac0b1f3f2"], "audit"),
        Rule("eval.enrol", ["pk": id], "pk"), Rule("eval.enrol", ["evaluated": hash], "evaluated"),
        Rule("eval.enrol", ["proof": point], "proof"), Rule("enrolled", ["handle": id], "handle"),
        Rule("txd", ["locale": "e"], "locale"), Rule("tds", ["iss": "https://am.example/"], "iss"),
    ]

    private func read(_ name: String, _ edit: (inout JSONObject) throws -> Void) async throws {
        let vectors = try Vectors.load()
        let message = try #require(vectors.messages.first { $0.name == name })
        let reading = try #require(MessageReading.all.first { $0.name == name })
        let parts = try CompactParts(message.compact)
        var content = try parts.object(1)
        try edit(&content)
        let text = try await signRaw(
            header: parts.parts[0], payload: JSONValue.object(content).serializedBytes(),
            with: vectors.signingKey(message.signer))
        _ = try reading.read(text, vectors.publicKey(message.signer))
    }

    @Test(
        "A message whose members do not fit together is refused",
        arguments: enrolments + passwords + transactions + forms)
    func rules(rule: Rule) async throws {
        let error = await #expect(throws: SigningProtocolError(.invalidMember, "")) {
            try await read(rule.message) { content in for (name, value) in rule.changes { content[name] = value } }
        }
        #expect(error?.member == rule.member)
    }

    @Test("The last values that fit are read")
    func bounds() async throws {
        try await read("cert") { $0["exp"] = .integer(1_789_913_600 + 400 * 86400) }
        try await read("cert") { $0["min"] = 7 }
        try await read("invite") { $0["exp"] = 1_790_000_001 }
        try await read("txd") { $0["exp"] = 1_790_001_001 }
        try await read("txd") { $0["exp"] = 1_790_004_600 }
        try await read("decision.blind") { ($0["status"], $0["effect"]) = ("deny", "deny") }
    }

    @Test(
        "A decision about a document names it by nonce and hash, and says what was shown",
        arguments: ["nonce", "txh", "dsp"])
    func decision(name: String) async throws {
        await #expect(throws: SigningProtocolError(.missingMember, "")) {
            try await read("decision") { $0[name] = nil }
        }
    }

    /// Changes one element of an array of objects.
    private func edit(
        _ list: String, _ index: Int, of content: inout JSONObject, _ change: (inout JSONObject) throws -> Void
    ) throws {
        var elements = try #require(content[list]?.array)
        var element = try #require(elements[index].object)
        try change(&element)
        elements[index] = .object(element)
        content[list] = .array(elements)
    }

    @Test("Each key of a list has its own thumbprint, and a proof where it approves; no secret key is among them")
    func keys() async throws {
        func refused(_ index: Int, _ member: String, _ change: (inout JSONObject) throws -> Void) async throws {
            let error = await #expect(throws: SigningProtocolError(.invalidMember, ""), "\(member)") {
                try await read("enrol") { try edit("keys", index, of: &$0, change) }
            }
            #expect(error?.member == member)
        }
        let other = try Vectors.load().publicKey("identity")
        for index in 0..<3 {
            try await refused(index, "keys[\(index)].kid") { $0["kid"] = .string(other.thumbprint.text) }
            try await refused(index, "keys[\(index)].kid") { $0["jwk"] = other.json }
        }
        try await refused(0, "keys[0].pop") { $0["pop"] = "a.b.c" }
        try await refused(2, "keys[2].pop") { $0["pop"] = nil }
        try await refused(1, "keys[1].usage") { $0["usage"] = "otp" }
        for (index, usage) in [(0, "transport"), (1, "device")] {
            try await refused(index, "keys") { $0["usage"] = .string(usage) }
        }
        try await refused(2, "keys") { $0["label"] = "device" }
        try await refused(1, "keys") { key in
            let first = try #require(CompactParts(Vectors.load().compact("enrol")).object(1)["keys"]?.array?.first)
            (key["kid"], key["jwk"]) = (first["kid"], first["jwk"])
        }
    }

    @Test(
        "A slot has a public key where the server helps, and nowhere else; a status names each key but those for codes")
    func parts() async throws {
        func refused(
            _ message: String, _ list: String, _ member: String, _ change: (inout JSONObject) throws -> Void
        ) async {
            let error = await #expect(throws: SigningProtocolError(.invalidMember, "")) {
                try await read(message) { try edit(list, 0, of: &$0, change) }
            }
            #expect(error?.member == member)
        }
        await refused("offer", "slots", "slots[0].pk") { $0["pk"] = nil }
        await refused("offer", "slots", "slots[0].pk") { $0["mode"] = "local" }
        await refused("status", "keys", "keys[0].kid") { $0["kid"] = nil }
        await refused("status", "keys", "keys[0].kid") { $0["usage"] = "otp" }
        try await read("status") {
            try edit("keys", 0, of: &$0) { ($0["kid"], $0["usage"]) = (nil, "otp") }
        }
        await refused("txd", "fields", "fields") { $0["id"] = "to" }
    }

    @Test("Ids for scanning, and documents, have shorter limits than other messages; what is too long is not signed")
    func lengths() async throws {
        let vectors = try Vectors.load()
        func read(_ name: String, padding: Int) async throws {
            let message = try #require(vectors.messages.first { $0.name == name })
            let reading = try #require(MessageReading.all.first { $0.name == name })
            let parts = try CompactParts(message.compact)
            let text = try await signRaw(
                header: parts.parts[0], payload: parts.parts[1] + [UInt8](repeating: 0x20, count: padding),
                with: vectors.signingKey(message.signer))
            _ = try reading.read(text, vectors.publicKey(message.signer))
        }
        for name in ["tds", "invite"] {
            let missing = 800 - (try vectors.compact(name)).utf8.count
            // Three bytes are four characters.
            try await read(name, padding: missing / 4 * 3)
            await #expect(throws: SigningProtocolError(.tooLarge, ""), "\(name)") {
                try await read(name, padding: missing / 4 * 3 + 6)
            }
        }
        let length = try CompactParts(vectors.compact("txd")).parts[1].count
        try await read("txd", padding: (16 << 10) - length)
        await #expect(throws: SigningProtocolError(.tooLarge, "")) {
            try await read("txd", padding: (16 << 10) - length + 1)
        }
        let head = try vectors.message("fetched", as: Fetched.self).content.head
        let key = try vectors.signingKey("online")
        await #expect(throws: SigningProtocolError(.tooLarge, "")) {
            try await SignedMessage.sign(
                Fetched(head: head, document: String(repeating: "a", count: 48 << 10)), with: key)
        }
        var object = try CompactParts(vectors.compact("txd")).object(1)
        let text = String(repeating: "a", count: 190)
        object["fields"] = .array(
            (0..<5).map { number in
                let value: [JSONValue] = Array(repeating: .string(text), count: 10)
                return [
                    "id": .string("f\(number)"), "label": "A", "type": "list", "value": .array(value),
                    "display": .string(Array(repeating: text, count: 10).joined(separator: ", ")),
                ]
            })
        let long = try TransactionDocument(.object(object), at: "")
        await #expect(throws: SigningProtocolError(.tooLarge, "")) { try await SignedMessage.sign(long, with: key) }
    }
}
