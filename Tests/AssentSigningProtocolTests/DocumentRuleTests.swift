import AssentCore
import AssentSigningProtocol
import Testing

@Suite("Transaction signing: what a device refuses to show")
struct DocumentRuleTests {
    let vectors: Vectors
    let good: JSONObject
    let audience: DocumentAudience

    init() throws {
        vectors = try Vectors.load()
        good = try CompactParts(vectors.compact("txd")).object(1)
        let enrol = try vectors.message("enrol", as: Enrolment.self).content
        audience = DocumentAudience(
            issuer: vectors.issuer, did: enrol.did, sub: enrol.sub,
            keys: Dictionary(uniqueKeysWithValues: enrol.keys.map { ($0.kid, $0.usage) }))
    }

    func read(_ edit: (inout JSONObject) -> Void) throws -> TransactionDocument {
        var object = good
        edit(&object)
        return try TransactionDocument(plaintext: JSONValue.object(object).serializedBytes())
    }

    func status(_ effect: String, _ name: String, _ kid: String) -> JSONValue {
        [
            "name": .string(name), "label": .string(name), "effect": .string(effect), "kids": [.string(kid)],
            "reason": "none",
        ]
    }

    func check(_ edit: (inout JSONObject) -> Void) throws {
        let document = try read(edit)
        try document.check(for: audience, txn: vectors.message("tds", as: Ticket.self).content.txn)
    }

    @Test("The page's document is fine")
    func fine() throws {
        #expect(throws: Never.self) { try check { _ in } }
    }

    @Test("Another transaction, issuer, container or user")
    func otherAudience() throws {
        let other = Base64URL.encode([UInt8](repeating: 1, count: 16))
        for (name, value) in [("txn", other), ("aud", other), ("iss", "https://other.example"), ("sub", "mallory")] {
            #expect(throws: SigningProtocolError(.documentRefused, ""), "\(name)") {
                try check { $0[name] = .string(value) }
            }
        }
        // Canonically equivalent texts are other texts.
        #expect(throws: SigningProtocolError.self) { try check { $0["iss"] = .string(vectors.issuer + "\u{301}") } }
        let document = try read { _ in }
        #expect(throws: SigningProtocolError(.documentRefused, "")) { try document.check(for: audience, txn: nil) }
    }

    @Test("Keys that are not the container's, cannot sign, or may not approve this kind")
    func keys() throws {
        let (device, transport, sign) = try (
            vectors.publicKey("device").thumbprint.text, vectors.publicKey("transport").thumbprint.text,
            vectors.publicKey("sign").thumbprint.text
        )
        let stranger = try vectors.publicKey("identity").thumbprint.text
        let deny = status("deny", "deny", device)
        for kid in [device, transport, stranger] {
            #expect(throws: SigningProtocolError(.documentRefused, ""), "\(kid)") {
                try check { $0["statuses"] = [status("approve", "accept", kid), deny] }
            }
        }
        for kid in [transport, stranger] {
            #expect(throws: SigningProtocolError(.documentRefused, "")) {
                try check { $0["statuses"] = [status("approve", "accept", sign), status("deny", "deny", kid)] }
            }
        }
        // The container has no `auth` key, so nothing may approve a sign-in.
        #expect(throws: SigningProtocolError(.documentRefused, "")) { try check { $0["kind"] = "authentication" } }
        #expect(throws: Never.self) { try check { $0["kind"] = "record" } }
    }

    @Test("No way to approve, no way to refuse, two ways to cancel")
    func statuses() throws {
        let (device, sign) = try (
            vectors.publicKey("device").thumbprint.text, vectors.publicKey("sign").thumbprint.text
        )
        let (approve, deny) = (status("approve", "accept", sign), status("deny", "deny", device))
        let cancel = [status("cancel", "c1", device), status("cancel", "c2", device)]
        #expect(throws: Never.self) { try check { $0["statuses"] = [approve, deny, cancel[0]] } }
        for statuses in [[approve, approve], [deny, status("report", "report", device)], [approve, deny] + cancel] {
            #expect(throws: SigningProtocolError.self) { try check { $0["statuses"] = .array(statuses) } }
        }
        #expect(throws: SigningProtocolError(.documentRefused, "")) {
            try check { $0["statuses"] = [deny, status("report", "report", device)] }
        }
        #expect(throws: SigningProtocolError(.documentRefused, "")) {
            try check { $0["statuses"] = [approve, status("report", "report", device)] }
        }
        for (name, label) in [("accept", "other"), ("other", "Approve")] {
            var twice = try #require(good["statuses"]?.array)
            var object = try #require(twice[1].object)
            object["name"] = .string(name)
            object["label"] = .string(label)
            twice[1] = .object(object)
            #expect(throws: SigningProtocolError(.invalidMember, "")) { try check { $0["statuses"] = .array(twice) } }
        }
    }

    @Test(
        "Texts that cannot be shown, and types, effects and values that are not known",
        arguments: [
            ("title", "a\u{202E}b"), ("title", ""), ("title", "line\nline"), ("text", "a\u{200B}b"),
            ("warning", "\u{2800}"),
            ("title", .string(String(repeating: "a", count: 101))), ("locale", "en_US"), ("kind", "other"),
            ("origin", ["place": "here"]), ("rp", ["id": "shop", "name": "Sh\u{7}op"]), ("exp", 1_790_001_000),
            ("exp", 1_790_004_601), ("match", ["mode": "qr", "digits": 2]), ("match", ["mode": "number", "digits": 4]),
            ("fields", [["id": "a", "label": "A", "type": "html", "value": "x", "display": "x"]]),
            ("fields", [["id": "a", "label": "A", "type": "text", "value": "x", "display": "\u{1B}[2J"]]),
            ("fields", [["id": "a", "label": "\u{301}A", "type": "text", "value": "x", "display": "x"]]),
            ("fields", [["id": "A", "label": "A", "type": "text", "value": "x", "display": "x"]]),
            ("fields", .array(Array(repeating: ["id": "a"], count: 17))),
            ("fields", [["id": "a", "label": "A", "type": "text", "value": "x", "display": "y"]]),
            ("fields", [["id": "a", "label": "A", "type": "text", "value": "\u{e9}", "display": "e\u{301}"]]),
            (
                "fields",
                [
                    [
                        "id": "a", "label": "A", "type": "amount", "value": ["amount": "200.00", "currency": "EUR"],
                        "display": "1.00 EUR",
                    ]
                ]
            ),
            (
                "fields",
                [
                    [
                        "id": "a", "label": "A", "type": "account", "value": ["iban": "DE02120300000000202051"],
                        "display": "DE02120300000000202051",
                    ]
                ]
            ),
            ("fields", [["id": "a", "label": "A", "type": "date", "value": "2026-12-31", "display": "31 Dec 2026"]]),
            ("fields", [["id": "a", "label": "A", "type": "list", "value": ["a", "b"], "display": "a, c"]]),
        ] as [(String, JSONValue)])
    func texts(name: String, value: JSONValue) {
        #expect(throws: SigningProtocolError.self) { try check { $0[name] = value } }
    }

    @Test(
        "A decision has a reason where the document requires one, and none where it allows none",
        arguments: [("none", [false]), ("optional", [false, true]), ("required", [true])])
    func reasons(rule: String, allowed: [Bool]) throws {
        let device = try vectors.publicKey("device").thumbprint
        let document = try read { document in
            var deny = status("deny", "deny", device.text).object ?? JSONObject()
            deny["reason"] = .string(rule)
            document["statuses"] = [status("approve", "accept", device.text), .object(deny)]
        }
        let deny = try #require(document.status(named: "deny"))
        for hasReason in [false, true] {
            let decision = Decision(
                issuer: document.issuer, did: document.did, sub: document.sub, txn: document.txn,
                nonce: document.nonce, document: .document("txd"),
                displayed: .displayed(document.displayed(status: deny, match: nil)), status: "deny", effect: .deny,
                reason: hasReason ? "not mine" : nil, jti: document.nonce)
            let member = document.mismatch(with: decision, compact: "txd", signer: device)
            let expected: String? = allowed.contains(hasReason) ? nil : "reason"
            #expect(member == expected)
        }
    }

    @Test("A decision by another key of the container than its answer names does not fit the document")
    func signers() throws {
        let (device, sign) = try (vectors.publicKey("device").thumbprint, vectors.publicKey("sign").thumbprint)
        let document = try read { document in
            document["match"] = nil
            document["statuses"] = [status("approve", "accept", sign.text), status("deny", "deny", device.text)]
        }
        for (effect, own, other) in [(DecisionEffect.approve, sign, device), (.deny, device, sign)] {
            let answer = try #require(document.statuses.first { $0.effect == effect })
            let decision = Decision(
                issuer: document.issuer, did: document.did, sub: document.sub, txn: document.txn,
                nonce: document.nonce, document: .document("txd"),
                displayed: .displayed(document.displayed(status: answer, match: nil)), status: answer.name,
                effect: effect, jti: document.nonce)
            #expect(document.mismatch(with: decision, compact: "txd", signer: own) == nil)
            #expect(document.mismatch(with: decision, compact: "txd", signer: other) == "kid")
        }
    }

    @Test("What was shown is present also when it is empty, and as bytes")
    func displayed() throws {
        let plain = try read {
            for name in ["text", "match", "warning", "origin"] { $0[name] = nil }
            $0["fields"] = []
        }
        let deny = try #require(plain.status(named: "deny"))
        #expect(
            plain.displayed(status: deny, match: nil)
                == ["Example Shop", "Confirm payment", "", "", "", "", "Decline", ""])
        #expect(SigningHash.displayed(["é"]) != SigningHash.displayed(["e\u{301}"]))
        #expect(plain.status(named: "DENY") == nil)
    }
}
