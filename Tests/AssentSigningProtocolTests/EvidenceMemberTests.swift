import AssentCore
import AssentJOSE
import Testing

@testable import AssentSigningProtocol

@Suite("Transaction signing: evidence with one member that is another's")
struct EvidenceMemberTests {
    typealias Contradiction = EvidenceTests.Contradiction

    private static let otherHash = Contradiction.otherHash
    private static let otherID = Contradiction.otherID
    private static let secondHash = JSONValue.string(Base64URL.encode([UInt8](repeating: 78, count: 32)))
    private static let device: JSONValue = ["usage": "device", "label": "device", "policy": "device"]
    private static let transport: JSONValue = ["usage": "transport", "label": "transport", "policy": "device"]
    private static let sign: JSONValue = ["usage": "sign", "label": "payments", "policy": "device"]

    private static func offered(_ keys: JSONValue...) -> Contradiction {
        Contradiction("offer", "keys", .array(keys), "enrolments[0].enrol.keys")
    }

    static let all: [Contradiction] = [
        Contradiction("record", "keys", [otherHash, secondHash], "enrolments[0].record.keys"),
        Contradiction("record", "by", ["sign"], "enrolments[0].endorsements"),
        Contradiction("record", "by", ["reset"], "enrolments[0].endorsements"),
        Contradiction("offer", "identity", otherHash, "enrolments[0].record.identity"),
        Contradiction("enrol", "pid", otherID, "enrolments[0].record.pid"),
        // Keys that were not offered, or are not protected as the server wanted.
        offered(device, transport),
        offered(device, transport, sign, ["usage": "sign", "label": "b", "policy": "device"]),
        offered(device, transport, ["usage": "auth", "label": "payments", "policy": "device"]),
        offered(device, transport, ["usage": "sign", "label": "payments", "policy": "other"]),
        offered(
            device, transport, ["usage": "sign", "label": "payments", "policy": "device", "slot": "signing"]),
        Contradiction("pop", "aud", "https://other.example", "enrolments[0].enrol.keys[2].pop"),
        Contradiction("pop", "usage", "auth", "enrolments[0].enrol.keys[2].pop"),
        Contradiction("pop", "kid", otherHash, "enrolments[0].enrol.keys[2].pop"),
        Contradiction("pop", "nonceS", otherHash, "enrolments[0].enrol.keys[2].pop"),
        Contradiction("possession", "aud", "https://other.example", "transactions[0].possession"),
        Contradiction("record", "approvals", 1301, "transactions[0].receipt.iat"),
        Contradiction("txd", "iat", 1361, "transactions[0].receipt.iat"),
    ]

    private func report(_ story: EvidenceStory, _ change: (inout JSONObject) -> Void = { _ in }) async throws
        -> EvidenceReport
    {
        EvidenceVerification.report(on: try await story.bundle(change: change), trust: try story.trust(0))
    }

    private func members(_ story: EvidenceStory, _ change: (inout JSONObject) -> Void = { _ in }) async throws
        -> [String]
    {
        try await report(story, change).contradicted.map(\.member)
    }

    @Test(
        "Each contradiction is found and named, and what it is about is not called proved",
        arguments: all + Contradiction.all)
    func contradictions(one: Contradiction) async throws {
        let report = try await report(EvidenceStory().edited(one.message) { $0[one.name] = one.value })
        #expect(report.contradicted.map(\.member).contains(one.member), "\(report.contradicted.map(\.sentence))")
        #expect(report.exitStatus == 2)
        for finding in report.established {
            switch finding {
            case .keySet: #expect(!one.member.hasPrefix("enrolments[0]"))
            case .decided, .refusedBlindly: #expect(!one.member.hasPrefix("transactions[0]"))
            default: break
            }
        }
        for claim in report.attested {
            switch claim {
            case .user: #expect(!one.member.hasPrefix("enrolments[0]"))
            default: #expect(!one.member.hasPrefix("transactions[0]"))
            }
        }
    }

    @Test("The last seconds that clocks may differ by, and the first of an approval, are good")
    func times() async throws {
        for (message, name, time) in [
            ("receipt", "since", 1360), ("record", "iat", 1360), ("record", "approvals", 1300), ("txd", "iat", 1360),
            ("txd", "exp", 1301),
        ] {
            let story = try EvidenceStory().edited(message) { $0[name] = .integer(time) }
            #expect(try await members(story) == [], "\(message).\(name)")
        }
    }

    @Test("Messages that agree with each other on another container, user, identity key or effect are found, too")
    func together() async throws {
        var renewed = try EvidenceStory()
        renewed.hasRenewal = true
        let (id, hash) = (Self.otherID, Self.otherHash)
        let lies: [(EvidenceStory, [String: [String: JSONValue]], String)] = [
            (
                try EvidenceStory(), ["offer": ["identity": hash], "record": ["identity": hash]],
                "enrolments[0].record.identity"
            ),
            (
                try EvidenceStory(),
                ["decision": ["did": id], "receipt": ["aud": id], "txd": ["aud": id], "possession": ["did": id]],
                "transactions[0].receipt.aud"
            ),
            (
                try EvidenceStory(),
                ["decision": ["sub": "mallory"], "receipt": ["sub": "mallory"], "txd": ["sub": "mallory"]],
                "transactions[0].receipt.sub"
            ),
            (
                try EvidenceStory(), ["receipt": ["effect": "deny", "state": "DENIED"]],
                "transactions[0].receipt.effect"
            ),
            (
                renewed,
                [
                    "offer.renewed": ["did": id], "enrol.renewed": ["did": id], "pop.renewed": ["did": id],
                    "record.renewed": ["aud": id], "endorse.device": ["did": id], "endorse.sign": ["did": id],
                ], "enrolments[1].record.aud"
            ),
            (
                renewed, ["enrol.renewed": ["sub": "mallory"], "record.renewed": ["sub": "mallory"]],
                "enrolments[1].record.sub"
            ),
        ]
        for (base, edits, member) in lies {
            var story = base
            for (message, values) in edits {
                story = story.edited(message) { content in for (name, value) in values { content[name] = value } }
            }
            let found = try await members(story)
            #expect(found.contains(member), "\(member): \(found)")
        }
    }

    /// Changes the endorsements of a key set in a bundle.
    private func endorse(_ index: Int, _ change: (inout [JSONValue]) -> Void, in object: inout JSONObject) {
        var enrolments = object["enrolments"]?.array ?? []
        guard enrolments.indices.contains(index), var set = enrolments[index].object else { return }
        var endorsements = set["endorsements"]?.array ?? []
        change(&endorsements)
        set["endorsements"] = .array(endorsements)
        enrolments[index] = .object(set)
        object["enrolments"] = .array(enrolments)
    }

    @Test("What a record says of old keys that vouched is what they signed: no more, and no less")
    func endorsements() async throws {
        var story = try EvidenceStory()
        story.hasRenewal = true
        #expect(try await members(story) == [])
        let by = "enrolments[1].record.by"
        #expect(try await members(story.edited("record.renewed") { $0["by"] = ["sign"] }) == [by])
        #expect(try await members(story.edited("record.renewed") { $0["by"] = ["device"] }) == [by])
        #expect(try await members(story) { endorse(1, { $0.removeLast() }, in: &$0) } == [by])
        #expect(try await members(story) { endorse(1, { $0.removeFirst() }, in: &$0) } == [by])
        let foreign = story.edited("endorse.device") { $0["aud"] = "https://other.example" }
        #expect(try await members(foreign) == ["enrolments[1].endorsements[0]", by])
        // The new keys do not vouch for themselves, and nothing vouches for the first ones.
        let own = try await story.message(
            "own", .endorsement, story.newSign,
            [
                "v": 1, "aud": .string(story.issuer), "did": .string(EvidenceStory.id(9)),
                "enrol": .string(SigningHash(sha256: []).text), "jti": .string(EvidenceStory.id(8)),
            ])
        let byNew = try await members(story) { endorse(1, { $0[1] = .string(own) }, in: &$0) }
        #expect(byNew == ["enrolments[1].endorsements[1]", by])
        let first = try await members(story) { endorse(0, { $0 = [.string(own)] }, in: &$0) }
        #expect(first == ["enrolments[0].endorsements"])
    }

    @Test("A refusal without its document is the device key's, and also of a container that may not approve yet")
    func blind() async throws {
        var story = try EvidenceStory()
        let shown = try #require(await story.bundle().transactions.first?.document)
        story.isBlind = true
        func withDocument(_ object: inout JSONObject) {
            var transaction = object["transactions"]?.array?.first?.object ?? JSONObject()
            transaction["txd"] = .string(shown)
            object["transactions"] = [.object(transaction)]
        }
        #expect(try await members(story.edited("record") { $0["approvals"] = 1350 }) == [])
        #expect(try await members(story, withDocument) == [])
        story.isBlindBySign = true
        #expect(try await members(story) == ["transactions[0].decision"])
        #expect(try await members(story, withDocument) == ["transactions[0].decision"])
        story.isBlindBySign = false
        story.hasOwnPossession = true
        #expect(try await members(story) == ["transactions[0].possession"])
    }

    @Test("A refusal of a document that asks for a number has none, and its receipt claims none")
    func number() async throws {
        let story = try EvidenceStory()
        let kid = try story.kid(story.sign)
        let texts = ["Shop", "Confirm payment", "", "", "", "", "To", "Bob", "Decline", ""]
        func refused(_ match: JSONValue?) -> EvidenceStory {
            story.edited("txd") { document in
                var statuses = document["statuses"]?.array ?? []
                var deny = statuses.removeLast().object ?? JSONObject()
                deny["kids"] = [kid]
                document["statuses"] = .array(statuses + [.object(deny)])
            }.edited("decision") { decision in
                (decision["status"], decision["effect"], decision["match"]) = ("deny", "deny", nil)
                decision["dsp"] = .string(SigningHash.displayed(texts).text)
            }.edited("receipt") { receipt in
                (receipt["status"], receipt["effect"], receipt["state"]) = ("deny", "deny", "DENIED")
                receipt["match"] = match
            }
        }
        #expect(try await members(refused(nil)) == [])
        #expect(try await members(refused(true)) == ["transactions[0].receipt.match"])
    }

    @Test("The frame of a gateway's request says of each optional field whether it is there, in one way")
    func frames() throws {
        func frame(_ field: [UInt8], at index: Int) -> [UInt8] {
            var frame = Frame("tsp/1 policy transaction")
            for place in 0..<16 {
                let isOptional = [8, 9, 10, 11, 14, 15].contains(place)
                frame.append(place == index ? .bytes(field) : isOptional ? .optional("x") : .text("x"))
            }
            return frame.bytes
        }
        for index in [8, 9, 10, 11, 14, 15] {
            for field: [UInt8] in [[0], [1], [1, 0x41]] {
                #expect(EvidenceRequest(frame: frame(field, at: index)) != nil, "\(index): \(field)")
            }
            for field: [UInt8] in [[], [0, 0x41], [2, 0x41], [0x41], [1, 0xFF]] {
                #expect(EvidenceRequest(frame: frame(field, at: index)) == nil, "\(index): \(field)")
            }
        }
        for index in [0, 7, 12, 13] {
            #expect(EvidenceRequest(frame: frame([0x41], at: index)) != nil)
            #expect(EvidenceRequest(frame: frame([0xFF], at: index)) == nil)
        }
    }
}
