import AssentCore
import AssentSigningProtocol
import Testing

@Suite("Transaction signing: what a device refuses to enrol for")
struct OfferRuleTests {
    let good: JSONObject

    init() throws { good = try CompactParts(Vectors.load().compact("offer")).object(1) }

    func offer(_ edit: (inout JSONObject) -> Void) throws -> Offer {
        var object = good
        edit(&object)
        return try Offer(plaintext: JSONValue.object(object).serializedBytes())
    }

    func key(_ usage: String, _ label: String, _ policy: String = "device", slot: String? = nil) -> JSONValue {
        .object(
            JSONObject(omittingNil: [
                "usage": .string(usage), "label": .string(label), "slot": slot.map(JSONValue.string),
                "policy": .string(policy),
            ]))
    }

    @Test("The page's offer is fine, and so is one without passwords")
    func fine() throws {
        #expect(throws: Never.self) { try offer { _ in }.check() }
        let plain = try offer {
            $0["keys"] = [
                key("device", "device"), key("transport", "transport"), key("sign", "payments"), key("otp", "o"),
            ]
            $0["slots"] = []
        }
        #expect(throws: Never.self) { try plain.check() }
    }

    @Test(
        "Keys: none or two of a kind that there is one of, too many, a label twice, a policy or a slot that is missing")
    func keys() throws {
        let (device, transport) = (key("device", "device"), key("transport", "transport"))
        let signs = (0..<5).map { key("sign", "s\($0)") }
        let lists: [[JSONValue]] = [
            [device, key("sign", "a")], [transport, key("sign", "a")], [device, device, transport],
            [device, transport, key("transport", "t2")], [device, transport] + signs,
            [device, transport, key("sign", "a"), key("sign", "a")],
            [device, transport, key("auth", "a"), key("auth", "b"), key("auth", "c")],
            [device, transport, key("sign", "a", "missing")], [device, transport, key("sign", "a", "pin")],
            [device, transport, key("sign", "a", "device", slot: "signing")],
            [device, transport, key("sign", "a", "pin", slot: "session")],
            [device, key("transport", "transport", "pin", slot: "session"), key("sign", "a", "pin", slot: "signing")],
            [key("device", "device", "pin", slot: "signing"), transport, key("sign", "a", "pin", slot: "signing")],
            [device, transport],
        ]
        for list in lists {
            #expect(throws: SigningProtocolError(.offerRefused, ""), "\(JSONValue.array(list).serialized())") {
                try offer { $0["keys"] = .array(list) }.check()
            }
        }
    }

    @Test("Modes: assisted elsewhere than for signing, local and assisted together, another mode than the policy's")
    func modes() throws {
        let pk = good["slots"]?.array?.first?["pk"]
        let policy = try #require(good["policies"]?.array?.last?.object)
        var local = policy
        local["id"] = "local"
        local["mode"] = "local"
        local["lock"] = ["type": "none"]
        let policies: JSONValue = [["id": "device", "type": "device"], .object(policy), .object(local)]
        let assisted: JSONValue = .object(
            JSONObject(omittingNil: ["slot": "signing", "mode": "assisted", "gen": 0, "pk": pk]))
        let session: JSONValue = ["slot": "session", "mode": "local", "gen": 0]
        #expect(throws: SigningProtocolError(.offerRefused, "")) {
            try offer {
                $0["policies"] = policies
                $0["slots"] = [assisted, session]
                $0["keys"] = [
                    key("device", "device"), key("transport", "transport", "local", slot: "session"),
                    key("sign", "payments", "pin", slot: "signing"),
                ]
            }.check()
        }
        #expect(throws: SigningProtocolError(.offerRefused, "")) {
            try offer {
                $0["slots"] = [
                    .object(JSONObject(omittingNil: ["slot": "session", "mode": "assisted", "gen": 0, "pk": pk]))
                ]
                $0["keys"] = [
                    key("device", "device"), key("transport", "transport", "pin", slot: "session"),
                    key("sign", "payments"),
                ]
            }.check()
        }
        #expect(throws: SigningProtocolError(.offerRefused, "")) {
            try offer {
                $0["policies"] = policies
                $0["slots"] = [["slot": "signing", "mode": "local", "gen": 0]]
            }.check()
        }
        #expect(throws: SigningProtocolError(.offerRefused, "")) { try offer { $0["commit"] = "exchange" }.check() }
        for (slots, code): (JSONValue, SigningProtocolError.Code) in [
            ([["slot": "signing", "mode": "silent", "gen": 0]], .modeUnsupported),
            ([["slot": "signing", "mode": "loud", "gen": 0]], .invalidMember),
            ([["slot": "signing", "mode": "assisted", "gen": 0]], .invalidMember),
            ([["slot": "other", "mode": "local", "gen": 0]], .invalidMember),
        ] {
            #expect(throws: SigningProtocolError(code, "")) { try offer { $0["slots"] = slots } }
        }
    }

    @Test(
        "One password has one set of rules: keys of two policies in one slot are refused, also where both say the same")
    func slotPolicies() throws {
        let policy = try #require(good["policies"]?.array?.last?.object)
        var other = policy
        other["id"] = "other"
        let policies: JSONValue = [["id": "device", "type": "device"], .object(policy), .object(other)]
        func check(_ second: String) throws {
            try offer {
                $0["policies"] = policies
                $0["keys"] = [
                    key("device", "device"), key("transport", "transport"),
                    key("sign", "payments", "pin", slot: "signing"), key("auth", "sign-in", second, slot: "signing"),
                ]
            }.check()
        }
        #expect(throws: Never.self) { try check("pin") }
        let refusal = #expect(throws: SigningProtocolError(.offerRefused, "")) { try check("other") }
        #expect(refusal?.detail.contains("several policies") == true)
    }

    @Test(
        "Policies out of bounds are not read",
        arguments: [
            ("kdf", "$scrypt$ln=13,r=8,p=1"), ("kdf", "$scrypt$ln=15,r=8,p=5"), ("kdf", "$argon2id$v=19"),
            ("kdf", "$scrypt$ln=015,r=8,p=1"), ("mode", "silent"), ("type", "biometry"), ("lock", ["type": "none"]),
            ("lock", ["type": "counter", "max": 11, "cap": 20, "delays": []]),
            ("lock", ["type": "counter", "max": 5, "cap": 4, "delays": []]),
            ("lock", ["type": "counter", "max": 5, "cap": 20, "delays": [86401]]), ("password", [:]), ("id", "Pin"),
        ] as [(String, JSONValue)])
    func policies(name: String, value: JSONValue) throws {
        var policy = try #require(good["policies"]?.array?.last?.object)
        policy[name] = value
        #expect(throws: SigningProtocolError.self) {
            try offer { $0["policies"] = [["id": "device", "type": "device"], .object(policy)] }
        }
        for (rule, bad) in [("minLength", 3), ("maxLength", 5), ("history", 25), ("cache", 3601), ("minUpper", 129)] {
            var policy = try #require(good["policies"]?.array?.last?.object)
            var rules = try #require(policy["password"]?.object)
            rules[rule] = .integer(bad)
            policy["password"] = .object(rules)
            #expect(throws: SigningProtocolError(.invalidMember, ""), "\(rule)") {
                try offer { $0["policies"] = [["id": "device", "type": "device"], .object(policy)] }
            }
        }
    }
}
