import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Testing

@Suite("Transaction signing: evidence of a PIN")
struct EvidencePINTests {
    typealias Contradiction = EvidenceTests.Contradiction

    private static func unlock(_ name: String, _ value: JSONValue) -> Contradiction {
        var unlock: JSONObject = ["slot": "signing", "gen": 0, "n": 1, "evaluated": 1290, "confirmed": 1295]
        unlock[name] = value
        return Contradiction("receipt", "unlock", .object(unlock), "transactions[0].receipt.unlock")
    }

    static let all: [Contradiction] = [
        Contradiction("eval", "aud", Contradiction.otherID, "transactions[0].eval.aud"),
        Contradiction("eval", "iss", "https://other.example", "transactions[0].eval.iss"),
        Contradiction("eval", "slot", "session", "transactions[0].eval.purpose"),
        // Five minutes before the decision, to the second; a minute after it.
        Contradiction("eval", "iat", 1000, "transactions[0].receipt.unlock"),
        Contradiction("eval", "iat", 1361, "transactions[0].receipt.unlock"),
        Contradiction("confirm", "eval", Contradiction.otherHash, "transactions[0].confirm"),
        Contradiction("confirm", "slot", "session", "transactions[0].confirm"),
        Contradiction("confirm", "gen", 1, "transactions[0].confirm"),
        Contradiction("confirm", "n", 2, "transactions[0].confirm"),
        Contradiction("confirm", "unl", Contradiction.otherID, "transactions[0].confirm"),
        Contradiction("confirm", "did", Contradiction.otherID, "transactions[0].confirm"),
        Contradiction("confirm", "aud", "https://other.example", "transactions[0].confirm"),
        Contradiction("decision", "unl", Contradiction.otherID, "transactions[0].decision.unl"),
        Contradiction("decision", "unl", nil, "transactions[0].decision.unl"),
        Contradiction("receipt", "unlock", nil, "transactions[0].eval"),
        Contradiction("receipt", "amr", ["pop"], "transactions[0].receipt.amr"),
        Contradiction("receipt", "amr", ["pop", "user"], "transactions[0].receipt.amr"),
        unlock("slot", "session"), unlock("gen", 1), unlock("n", 2), unlock("evaluated", 1291),
        unlock("confirmed", 1229), unlock("confirmed", 1361),
        // The offer is of generation 0: its key is known.
        Contradiction(
            "eval", "pk", .string(Base64URL.encode([2] + [UInt8](repeating: 7, count: 48))),
            "transactions[0].eval.pk"),
    ]

    @Test("The bundle verifies, and says that the PIN was confirmed and counted")
    func good() async throws {
        let story = try EvidenceStory().withPIN()
        for time in [1001, 1290, 1325] {
            let bundle = try await story.edited("eval") { $0["iat"] = .integer(time) }.bundle()
            let report = try EvidenceVerification.report(on: bundle, trust: story.trust(0))
            #expect(report.contradicted.map(\.sentence) == [] && report.exitStatus == 0)
            #expect(report.established.contains { if case .confirmed(_, .signing, 1) = $0 { true } else { false } })
            #expect(report.attested.contains { if case .passwordCounted = $0 { true } else { false } })
        }
    }

    @Test("Each contradiction is found and named", arguments: all)
    func contradictions(one: Contradiction) async throws {
        let story = try EvidenceStory().withPIN().edited(one.message) { $0[one.name] = one.value }
        let report = try await EvidenceVerification.report(on: story.bundle(), trust: story.trust(0))
        #expect(report.contradicted.map(\.member).contains(one.member), "\(report.contradicted.map(\.sentence))")
        #expect(report.exitStatus == 2)
        #expect(!report.attested.contains { if case .passwordCounted = $0 { true } else { false } })
    }

    @Test("What evaluates a new password opens nothing, and only a key of the slot confirms")
    func others() async throws {
        let story = try EvidenceStory().withPIN()
        func members(_ story: EvidenceStory) async throws -> [String] {
            try await EvidenceVerification.report(on: story.bundle(), trust: story.trust(0)).contradicted.map(\.member)
        }
        let change = story.edited("eval") { eval in
            eval["purpose"] = "change"
            for name in ["unl", "n", "tries", "spare", "wait"] { eval[name] = nil }
        }
        #expect(try await members(change).contains("transactions[0].eval.purpose"))
        var byDevice = story
        byDevice.isConfirmedByDevice = true
        #expect(try await members(byDevice).contains("transactions[0].confirm"))
        for name in ["eval", "confirm"] {
            #expect(try await members(story.signed(name, by: story.thief)).contains("transactions[0].\(name)"))
        }
    }

    private func members(_ story: EvidenceStory, _ change: (inout JSONObject) -> Void = { _ in }) async throws
        -> [String]
    {
        try await EvidenceVerification.report(on: story.bundle(change: change), trust: story.trust(0))
            .contradicted.map(\.member)
    }

    @Test("The last seconds by which clocks may differ are good for a confirmation, too")
    func lastSeconds() async throws {
        let story = try EvidenceStory().withPIN()
        for time in [1230, 1360] {
            let good = story.edited("receipt") { $0["unlock"] = Self.unlocked(confirmed: time) }
            #expect(try await members(good) == [], "\(time)")
        }
        let late = story.edited("eval") { $0["iat"] = 1360 }.edited("receipt") {
            $0["unlock"] = Self.unlocked(evaluated: 1360, confirmed: 1360)
        }
        #expect(try await members(late) == [])
    }

    private static func unlocked(evaluated: Int = 1290, confirmed: Int) -> JSONValue {
        [
            "slot": "signing", "gen": 0, "n": 1, "evaluated": .integer(evaluated), "confirmed": .integer(confirmed),
        ]
    }

    @Test("Of a PIN that was changed since, the key is not the offer's; a key without a PIN has no evaluation")
    func generations() async throws {
        let point = JSONValue.string(Base64URL.encode([2] + [UInt8](repeating: 7, count: 48)))
        let changed = try EvidenceStory().withPIN().edited("eval") { ($0["gen"], $0["pk"]) = (1, point) }
        #expect(try await members(changed) == [])
        for name in ["eval", "confirm"] {
            let found = try await members(try EvidenceStory()) { object in
                var transaction = object["transactions"]?.array?.first?.object ?? JSONObject()
                transaction[name] = "a.b.c"
                object["transactions"] = [.object(transaction)]
            }
            #expect(found == ["transactions[0].eval"], "\(name)")
        }
    }

    @Test("The receipt says user where biometry may stand for the PIN, and pin where it may not")
    func biometry() async throws {
        func story(_ methods: JSONValue) throws -> EvidenceStory {
            try EvidenceStory().withPIN().edited("offer") { offer in
                offer["policies"] = .array(
                    (offer["policies"]?.array ?? []).map { policy in
                        guard policy["id"]?.string == "pin", var policy = policy.object else { return policy }
                        policy["type"] = "bioPassword"
                        return .object(policy)
                    })
            }.edited("receipt") { $0["amr"] = methods }
        }
        #expect(try await members(story(["pop", "user"])) == [])
        for methods: JSONValue in [["pop"], ["pop", "pin"]] {
            #expect(try await members(story(methods)) == ["transactions[0].receipt.amr"])
        }
    }

    @Test("A PIN that only the device checks is neither proved nor counted, whatever the receipt says")
    func local() async throws {
        let story = try EvidenceStory().edited("offer") { offer in
            var keys = offer["keys"]?.array ?? []
            keys[2] = ["usage": "sign", "label": "payments", "policy": "pin", "slot": "signing"]
            offer["keys"] = .array(keys)
            offer["slots"] = [["slot": "signing", "mode": "local", "gen": 0]]
            offer["policies"] = [
                ["id": "device", "type": "device"],
                [
                    "id": "pin", "type": "password", "mode": "local", "kdf": "$scrypt$ln=15,r=8,p=1",
                    "password": [
                        "minLength": 4, "maxLength": 12, "sequences": false, "common": false, "history": 0,
                        "minAge": 0, "maxAge": 0, "cache": 0,
                    ], "lock": ["type": "none"],
                ],
            ]
        }.edited("enrol") { enrol in
            var keys = enrol["keys"]?.array ?? []
            var key = keys.removeLast().object ?? JSONObject()
            (key["policy"], key["slot"], key["keystore"]) = ("pin", "signing", "software+software")
            enrol["keys"] = .array(keys + [.object(key)])
        }
        let report = try await EvidenceVerification.report(on: story.bundle(), trust: story.trust(0))
        #expect(report.contradicted.map(\.sentence) == [])
        #expect(report.notEstablished.contains { if case .localPassword = $0 { true } else { false } })
        #expect(!report.established.contains { if case .confirmed = $0 { true } else { false } })
        #expect(!report.attested.contains { if case .passwordCounted = $0 { true } else { false } })
        let counted = story.edited("receipt") { $0["amr"] = ["pop", "pin"] }
        #expect(try await members(counted) == ["transactions[0].receipt.amr"])
        // The other stories have no such gap.
        for story in [try EvidenceStory(), try EvidenceStory().withPIN()] {
            let report = try await EvidenceVerification.report(on: story.bundle(), trust: story.trust(0))
            #expect(!report.notEstablished.contains { if case .localPassword = $0 { true } else { false } })
        }
    }
}
