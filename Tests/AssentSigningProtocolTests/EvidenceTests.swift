import AssentCore
import AssentJOSE
import AssentSigningProtocol
import TestSupport
import Testing

@Suite("Transaction signing: evidence")
struct EvidenceTests {
    static func vectorBundle() throws -> EvidenceBundle {
        let vectors = try Vectors.load()
        return try EvidenceBundle(
            issuer: vectors.issuer, identities: [vectors.publicKey("identity")], next: [], previous: [],
            certificates: [vectors.compact("cert")],
            enrolments: [
                EvidenceEnrolment(
                    record: vectors.compact("record"), enrol: vectors.compact("enrol"), offer: vectors.compact("offer"),
                    endorsements: [])
            ],
            transactions: [
                EvidenceTransaction(
                    document: vectors.compact("txd"), request: vectors.bytes("frame of the details"),
                    decision: vectors.compact("decision"), possession: vectors.compact("possession"),
                    receipt: vectors.compact("receipt"), evaluation: vectors.compact("eval.unlock"),
                    confirmation: vectors.compact("confirm"))
            ])
    }

    @Test("The bundle of the page verifies, and says what is proved, claimed and not shown")
    func vectors() throws {
        let vectors = try Vectors.load()
        let root = try vectors.publicKey("identity").thumbprint
        let bundle = try EvidenceBundle(reading: Self.vectorBundle().encoded())
        let report = EvidenceVerification.report(on: bundle, trust: root)
        #expect(report.contradicted.map(\.sentence) == [])
        #expect(report.exitStatus == 0)
        #expect(report.root == root)
        let sign = try vectors.publicKey("sign").thumbprint
        #expect(
            report.established.contains {
                if case .decided(_, sign, "accept", "Approve", let texts) = $0 {
                    texts.contains("200.00 EUR")
                } else {
                    false
                }
            })
        #expect(report.established.contains { if case .sameDecision = $0 { true } else { false } })
        #expect(report.established.contains { if case .confirmed(_, .signing, 1) = $0 { true } else { false } })
        #expect(
            report.established.contains {
                if case .request(_, .details(let text)) = $0 { text.contains("Bob") } else { false }
            })
        #expect(report.attested.contains(.user(sub: vectors.sub, name: "ana")))
        #expect(report.attested.contains { if case .numberMatched = $0 { true } else { false } })
        #expect(report.attested.contains { if case .passwordCounted = $0 { true } else { false } })
        #expect(report.notEstablished == EvidenceGap.always)
        for sentence in report.established.map(\.sentence) + report.attested.map(\.sentence)
            + report.notEstablished.map(\.sentence)
        {
            #expect(sentence.contains(" ") && !sentence.isEmpty)
        }
    }

    @Test("A text that a relying party wrote is told as one text, also where it looks like several")
    func texts() {
        let (txn, key) = (SigningID(random: SystemRandom()), KeyThumbprint(random: SystemRandom()))
        let note = "x | Amount | 900.00 EUR"
        let decided = EvidenceFinding.decided(
            txn: txn, kid: key, status: "accept", label: "Approve",
            texts: ["Shop", "", "Amount", "1.00 EUR", "Note", note, "Note", #"y", "Amount", "900.00 EUR"#, "Approve"])
        let quoted = #""Shop", "Amount", "1.00 EUR", "Note", "x | Amount | 900.00 EUR", "Note", "#
        #expect(decided.sentence.contains("with these texts: " + quoted), "\(decided.sentence)")
        #expect(decided.sentence.hasSuffix(#""y\", \"Amount\", \"900.00 EUR", "Approve""#))
        let asked = EvidenceFinding.request(txn: txn, .policyTransaction(["/alpha", "", "a | b"]))
        #expect(asked.sentence.hasSuffix(#"the gateway's: "/alpha", "", "a | b""#), "\(asked.sentence)")
    }

    @Test("The text of a device's own record is told as a quotation, also where it goes on like the report")
    func records() {
        let txn = SigningID(random: SystemRandom())
        let text = #"yes. The key k signed "accept" ("Approve") for transaction t"#
        let record = EvidenceFinding.request(txn: txn, .details(text))
        let quoted = #" is: "yes. The key k signed \"accept\" (\"Approve\") for transaction t""#
        #expect(record.sentence.hasSuffix(quoted), "\(record.sentence)")
        let asked = EvidenceFinding.request(txn: txn, .details(#"[{"to": "Bob"}]"#))
        #expect(asked.sentence.hasSuffix(#" is: [{"to": "Bob"}]"#), "\(asked.sentence)")
    }

    @Test("Without a trusted identity key the exit status is 64, with another one it is 2")
    func roots() throws {
        let vectors = try Vectors.load()
        let bundle = try Self.vectorBundle()
        let untrusted = EvidenceVerification.report(on: bundle, trust: nil)
        #expect(untrusted.exitStatus == 64 && untrusted.contradicted.isEmpty && !untrusted.established.isEmpty)
        let other = try EvidenceVerification.report(on: bundle, trust: vectors.publicKey("device").thumbprint)
        #expect(other.exitStatus == 2 && other.established.isEmpty)
        #expect(other.contradicted.first?.member == "identity")
    }

    @Test("A changed bit anywhere in a bundle: it is not read, or something is contradicted")
    func bits() throws {
        let vectors = try Vectors.load()
        let root = try vectors.publicKey("identity").thumbprint
        let bytes = try Self.vectorBundle().encoded()
        for index in stride(from: 0, to: bytes.count, by: Soak.isOn ? 1 : 29) {
            var changed = bytes
            changed[index] ^= 1 << UInt8(index % 7)
            guard let bundle = try? EvidenceBundle(reading: changed) else { continue }
            let report = EvidenceVerification.report(on: bundle, trust: root)
            #expect(report.exitStatus == 2, "byte \(index): \(Character(UnicodeScalar(bytes[index])))")
        }
    }

    @Test("A bundle that is cut off or extended is not read")
    func lengths() throws {
        let bytes = try Self.vectorBundle().encoded()
        for length in stride(from: 0, to: bytes.count - 1, by: 211) {
            #expect(throws: SigningProtocolError.self) { try EvidenceBundle(reading: Array(bytes.prefix(length))) }
        }
        #expect(throws: SigningProtocolError.self) { try EvidenceBundle(reading: bytes + [0x7D]) }
        let spaces = [UInt8](repeating: 0x20, count: EvidenceBundle.limit)
        #expect(throws: SigningProtocolError(.tooLarge, "")) { try EvidenceBundle(reading: bytes + spaces) }
    }

    @Test("A bundle has room for each key set of a container and each identity key of an issuer, and for no more")
    func room() throws {
        let bundle = try Self.vectorBundle()
        let small = EvidenceEnrolment(record: "a", enrol: "b", offer: "c", endorsements: ["d", "e"])
        let keys = try (0...17).map { _ in try ProtocolKey(SoftwareSigningKey.generate(.es256)) }
        func read(enrolments: Int = 1, identities: Int = 1) throws -> EvidenceBundle {
            let written = EvidenceBundle(
                issuer: bundle.issuer, identities: Array(keys.prefix(identities)), next: [], previous: [],
                certificates: bundle.certificates, enrolments: Array(repeating: small, count: enrolments),
                transactions: bundle.transactions)
            return try EvidenceBundle(reading: written.encoded())
        }
        // Records are numbered from 0 to 1000, and an identity key has 16 successors.
        #expect(try read(enrolments: 1001, identities: 17).enrolments.count == 1001)
        #expect(throws: SigningProtocolError.self) { try read(enrolments: 1002) }
        #expect(throws: SigningProtocolError.self) { try read(identities: 18) }
    }

    @Test("A bundle of a container that has often had new keys verifies, key set by key set")
    func manyRenewals() async throws {
        var story = try EvidenceStory()
        story.renewals = 120
        let report = try await EvidenceVerification.report(on: story.bundle(), trust: story.trust(0))
        #expect(report.contradicted.map(\.sentence) == [] && report.exitStatus == 0)
        #expect(report.established.count { if case .keySet = $0 { true } else { false } } == 121)
    }

    @Test("A bundle of our own verifies: approved, refused blindly, after a renewal, after identity keys changed")
    func stories() async throws {
        var story = try EvidenceStory()
        func report(_ bundle: EvidenceBundle, _ trust: Int = 0) throws -> EvidenceReport {
            try EvidenceVerification.report(on: bundle, trust: story.trust(trust))
        }
        let approved = try await report(story.bundle())
        #expect(approved.contradicted.map(\.sentence) == [] && approved.exitStatus == 0)
        #expect(try await report(story.bundle(identities: 0...2), 0).contradicted.map(\.sentence) == [])
        #expect(try await report(story.bundle(identities: 0...2), 1).contradicted.map(\.sentence) == [])
        #expect(try await report(story.bundle(identities: 0...2), 2).contradicted.map(\.sentence) == [])
        #expect(try await report(story.bundle(identities: 0...2, certifier: 2), 0).contradicted.map(\.sentence) == [])
        story.isBlind = true
        let blind = try await report(story.bundle())
        #expect(blind.contradicted.map(\.sentence) == [])
        #expect(blind.notEstablished.contains { if case .shown = $0 { true } else { false } })
        story.isBlind = false
        story.hasRenewal = true
        let renewed = try await report(story.bundle())
        #expect(renewed.contradicted.map(\.sentence) == [] && renewed.exitStatus == 0)
        #expect(renewed.established.contains { if case .endorsed(1, _) = $0 { true } else { false } })
        let unasked = try await report(
            story.bundle { $0["transactions"] = Self.dropping("request", from: $0["transactions"]) })
        #expect(unasked.exitStatus == 0)
        #expect(unasked.notEstablished.contains { if case .request = $0 { true } else { false } })
    }

    static func dropping(_ name: String, from value: JSONValue?) -> JSONValue? {
        .array(
            (value?.array ?? []).map { element in
                var object = element.object ?? JSONObject()
                object[name] = nil
                return .object(object)
            })
    }

    /// What is changed in which message, and the member that must be named.
    struct Contradiction: Sendable, CustomTestStringConvertible {
        let message: String
        let name: String
        let value: JSONValue?
        let member: String
        var testDescription: String { "\(message).\(name) → \(member)" }

        init(_ message: String, _ name: String, _ value: JSONValue?, _ member: String) {
            (self.message, self.name, self.value, self.member) = (message, name, value, member)
        }

        static let otherID = JSONValue.string(Base64URL.encode([UInt8](repeating: 77, count: 16)))
        static let otherHash = JSONValue.string(Base64URL.encode([UInt8](repeating: 77, count: 32)))
        /// A field that shows something else than it has.
        static func field(_ type: String, _ value: JSONValue, shown: String) -> JSONValue {
            ["id": "a", "label": "A", "type": .string(type), "value": value, "display": .string(shown)]
        }
        static let amount = field("amount", ["amount": "200.00", "currency": "EUR"], shown: "1.00 EUR")

        static let all: [Contradiction] = [
            Contradiction("cert", "iss", "https://other.example", "certs[0].iss"),
            Contradiction("cert", "exp", 1050, "enrolments[0].record.iat"),
            Contradiction("cert", "use", "enc", "enrolments[0].record"),
            Contradiction("cert", "jwk", nil, "certs[0].jwk"),
            Contradiction("record", "seq", 1, "enrolments[0].record.prev"),
            Contradiction("record", "prev", otherHash, "enrolments[0].record.prev"),
            Contradiction("record", "iss", "https://other.example", "enrolments[0].record.iss"),
            Contradiction("record", "aud", otherID, "enrolments[0].record.aud"),
            Contradiction("record", "pid", otherID, "enrolments[0].record.pid"),
            Contradiction("record", "sub", "mallory", "enrolments[0].record.sub"),
            Contradiction("record", "enrol", otherHash, "enrolments[0].record.enrol"),
            Contradiction("record", "transcript", otherHash, "enrolments[0].record.transcript"),
            Contradiction("record", "identity", otherHash, "enrolments[0].record.identity"),
            Contradiction("record", "commit", "exchange", "enrolments[0].record.commit"),
            Contradiction("record", "by", ["device"], "enrolments[0].endorsements"),
            Contradiction("record", "iat", 1380, "transactions[0].receipt.since"),
            Contradiction("record", "approvals", 1350, "transactions[0].receipt.iat"),
            Contradiction("offer", "aud", otherHash, "enrolments[0].offer.aud"),
            Contradiction("offer", "did", otherID, "enrolments[0].record.aud"),
            Contradiction("offer", "pid", otherID, "enrolments[0].record.pid"),
            Contradiction(
                "offer", "keys",
                [
                    ["usage": "device", "label": "device", "policy": "device"],
                    ["usage": "transport", "label": "transport", "policy": "device"],
                    ["usage": "sign", "label": "other", "policy": "device"],
                ], "enrolments[0].enrol.keys"),
            Contradiction("enrol", "offer", otherHash, "enrolments[0].enrol.offer"),
            Contradiction("enrol", "did", otherID, "enrolments[0].record.aud"),
            Contradiction("enrol", "sub", "mallory", "enrolments[0].record.sub"),
            Contradiction("enrol", "aud", "https://other.example", "enrolments[0].enrol.aud"),
            Contradiction("enrol", "nonceS", otherHash, "enrolments[0].enrol.keys[2].pop"),
            Contradiction("pop", "device", otherHash, "enrolments[0].enrol.keys[2].pop"),
            Contradiction("pop", "label", "other", "enrolments[0].enrol.keys[2].pop"),
            Contradiction("pop", "did", otherID, "enrolments[0].enrol.keys[2].pop"),
            Contradiction("txd", "sub", "mallory", "transactions[0].txd.sub"),
            Contradiction("txd", "txn", otherID, "transactions[0].txd.txn"),
            Contradiction("txd", "aud", otherID, "transactions[0].txd.aud"),
            Contradiction("txd", "iss", "https://other.example", "transactions[0].txd.iss"),
            Contradiction("txd", "req", otherHash, "transactions[0].txd.req"),
            Contradiction("txd", "rp", ["id": "other", "name": "Other"], "transactions[0].receipt.rp"),
            Contradiction("txd", "exp", 1250, "transactions[0].receipt.iat"),
            Contradiction("txd", "match", nil, "transactions[0].decision.match"),
            Contradiction("txd", "fields", [amount], "transactions[0].txd.fields[0].display"),
            Contradiction(
                "txd", "fields", [field("date", "2026-12-31", shown: "2026-12-01")],
                "transactions[0].txd.fields[0].display"),
            Contradiction(
                "txd", "fields", [field("party", "Mallory", shown: "Bob")], "transactions[0].txd.fields[0].display"),
            Contradiction("decision", "txh", otherHash, "transactions[0].decision.txh"),
            Contradiction("decision", "dsp", otherHash, "transactions[0].decision.dsp"),
            Contradiction("decision", "nonce", otherID, "transactions[0].decision.nonce"),
            Contradiction("decision", "status", "deny", "transactions[0].decision.dsp"),
            Contradiction("decision", "effect", "deny", "transactions[0].decision.effect"),
            Contradiction("decision", "reason", "because", "transactions[0].decision.reason"),
            Contradiction("decision", "match", "43", "transactions[0].decision.dsp"),
            Contradiction("decision", "unl", otherID, "transactions[0].eval"),
            Contradiction("decision", "aud", "https://other.example", "transactions[0].decision.aud"),
            Contradiction("decision", "did", otherID, "transactions[0].receipt.aud"),
            Contradiction("decision", "sub", "mallory", "transactions[0].receipt.sub"),
            Contradiction("decision", "txn", otherID, "transactions[0].receipt.txn"),
            Contradiction("possession", "dh", otherHash, "transactions[0].possession"),
            Contradiction("possession", "txn", otherID, "transactions[0].possession"),
            Contradiction("possession", "did", otherID, "transactions[0].possession"),
            Contradiction("receipt", "txn", otherID, "transactions[0].receipt.txn"),
            Contradiction("receipt", "sub", "mallory", "transactions[0].receipt.sub"),
            Contradiction("receipt", "aud", otherID, "transactions[0].receipt.aud"),
            Contradiction("receipt", "dh", otherHash, "transactions[0].receipt.dh"),
            Contradiction("receipt", "txh", otherHash, "transactions[0].receipt.txh"),
            Contradiction("receipt", "req", otherHash, "transactions[0].request"),
            Contradiction("receipt", "status", "other", "transactions[0].receipt.status"),
            Contradiction("receipt", "kid", otherHash, "transactions[0].receipt.kid"),
            Contradiction("receipt", "device", otherHash, "transactions[0].receipt.device"),
            Contradiction("receipt", "record", otherHash, "transactions[0].receipt.record"),
            Contradiction("receipt", "since", 1361, "transactions[0].receipt.since"),
            Contradiction("receipt", "iat", 1400, "transactions[0].receipt.iat"),
            Contradiction("receipt", "iat", 99999, "transactions[0].receipt.iat"),
            Contradiction("receipt", "match", nil, "transactions[0].receipt.match"),
            Contradiction("receipt", "amr", ["pop", "pin"], "transactions[0].receipt.amr"),
            Contradiction("receipt", "rp", "other", "transactions[0].receipt.rp"),
            Contradiction(
                "receipt", "unlock", ["slot": "signing", "gen": 0, "n": 1, "evaluated": 1290, "confirmed": 1291],
                "transactions[0].eval"),
        ]
    }

    @Test(
        "A message that is signed by another key is named",
        arguments: [
            ("cert", "certs[0]"), ("record", "enrolments[0].record"), ("enrol", "enrolments[0].enrol"),
            ("offer", "enrolments[0].offer"), ("pop", "enrolments[0].enrol.keys[2].pop"),
            ("txd", "transactions[0].txd"),
            ("decision", "transactions[0].decision"), ("possession", "transactions[0].possession"),
            ("receipt", "transactions[0].receipt"),
        ])
    func signatures(message: String, member: String) async throws {
        let story = try EvidenceStory()
        let forged = story.signed(message, by: story.thief)
        let report = try await EvidenceVerification.report(on: forged.bundle(), trust: story.trust(0))
        #expect(report.contradicted.map(\.member).contains(member), "\(report.contradicted.map(\.sentence))")
        #expect(report.exitStatus == 2)
    }

    @Test("What is missing, or of another decision, is named")
    func spliced() async throws {
        let story = try EvidenceStory()
        let other = try await EvidenceStory().bundle().transactions[0]
        let base = try await story.bundle()
        let good = base.transactions[0]
        let cases: [(EvidenceTransaction, String)] = [
            (
                EvidenceTransaction(
                    document: nil, request: good.request, decision: good.decision, possession: good.possession,
                    receipt: good.receipt), "transactions[0].txd"
            ),
            (
                EvidenceTransaction(
                    document: good.document, request: good.request, decision: good.decision, receipt: good.receipt),
                "transactions[0].possession"
            ),
            (
                EvidenceTransaction(
                    document: good.document, request: Array("other".utf8), decision: good.decision,
                    possession: good.possession, receipt: good.receipt), "transactions[0].request"
            ),
            (
                EvidenceTransaction(
                    document: good.document, request: good.request, decision: good.decision,
                    possession: other.possession, receipt: good.receipt), "transactions[0].possession"
            ),
            (
                EvidenceTransaction(
                    document: other.document, request: good.request, decision: good.decision,
                    possession: good.possession, receipt: good.receipt), "transactions[0].txd"
            ),
            (
                EvidenceTransaction(
                    document: good.document, request: good.request, decision: other.decision,
                    possession: good.possession, receipt: good.receipt), "transactions[0].decision"
            ),
            (
                EvidenceTransaction(
                    document: good.document, request: good.request, decision: good.decision,
                    possession: good.possession, receipt: other.receipt), "transactions[0].receipt"
            ),
        ]
        for (transaction, member) in cases {
            var object = base.members
            object["transactions"] = [transaction.json]
            let bundle = try EvidenceBundle(reading: JSONValue.object(object).serializedBytes())
            let report = try EvidenceVerification.report(on: bundle, trust: story.trust(0))
            #expect(report.contradicted.map(\.member).contains(member), "\(report.contradicted.map(\.sentence))")
            #expect(report.exitStatus == 2)
        }
    }

    @Test("A request is read from its frame; what only hashes to req and is no frame is a contradiction")
    func requests() async throws {
        func report(_ bytes: [UInt8]) async throws -> EvidenceReport {
            let hash = JSONValue.string(SigningHash(sha256: bytes).text)
            let story = try EvidenceStory().edited("txd") { $0["req"] = hash }.edited("receipt") { $0["req"] = hash }
            let bundle = try await story.bundle { object in
                var transaction = object["transactions"]?.array?.first?.object ?? JSONObject()
                transaction["request"] = .string(Base64URL.encode(bytes))
                object["transactions"] = [.object(transaction)]
            }
            return try EvidenceVerification.report(on: bundle, trust: story.trust(0))
        }
        let binding = PolicyTransactionBinding(
            id: "1", realm: "/", policySet: "bank", policy: "pay", revision: "1", strategy: "journey", specifier: "J",
            resource: "https://api.example:443/", query: nil, method: "POST", mediaType: nil, bodyHash: nil,
            user: "user-1", session: "s", grant: nil, keyThumbprint: nil)
        let good = try await report(binding.frame.bytes)
        #expect(good.contradicted.map(\.sentence) == [])
        #expect(
            good.established.contains {
                if case .request(_, .policyTransaction(let fields)) = $0 {
                    fields.count == 16 && fields[9] == "POST" && fields[8].isEmpty
                } else {
                    false
                }
            })
        var frames: [[UInt8]] = [
            [], [0], Array("tsp/1 details".utf8), Array("tsp/1 details".utf8) + [0],
            Frame("tsp/1 details", .text("a"), .text("b")).bytes, Frame("tsp/1 details", .bytes([0xFF])).bytes,
            Frame("tsp/1 other", .text("a")).bytes, Array(binding.frame.bytes.dropLast()), binding.frame.bytes + [0],
            Array("tsp/1 details".utf8) + [0, 0xFF, 0xFF, 0xFF, 0xFF, 1],
        ]
        let byte = try #require(binding.frame.bytes.lastIndex(of: 0))
        var odd = binding.frame.bytes
        odd[byte] = 2
        frames.append(odd)
        for frame in frames {
            #expect(try await report(frame).contradicted.map(\.member) == ["transactions[0].request"], "\(frame)")
        }
    }

    @Test("Chains of identity keys: a gap, a forged link, and what is later than the end of an older key")
    func identities() async throws {
        let story = try EvidenceStory()
        func members(_ bundle: EvidenceBundle, _ trust: Int) throws -> [String] {
            try EvidenceVerification.report(on: bundle, trust: story.trust(trust)).contradicted.map(\.member)
        }
        let noNext = try await story.bundle(identities: 0...1, certifier: 1) { $0["next"] = [] }
        #expect(try members(noNext, 0).contains("identity[1]"))
        let noPrevious = try await story.bundle(identities: 0...1) { $0["previous"] = [] }
        #expect(try members(noPrevious, 1).contains("identity[0]"))
        #expect(try members(noPrevious, 1).contains("certs[0]"))
        #expect(try members(noPrevious, 0) == [])
        let forgedNext = try await story.signed("next", by: story.thief).bundle(identities: 0...1, certifier: 1)
        #expect(try members(forgedNext, 0).contains("next[0]"))
        let forgedPrevious = try await story.signed("previous", by: story.thief).bundle(identities: 0...1)
        #expect(try members(forgedPrevious, 1).contains("previous[0]"))
        let misnumbered = try await story.edited("previous") { $0["seq"] = 2 }.bundle(identities: 0...1)
        #expect(try members(misnumbered, 0) == ["previous[0].seq"])
        // A key that was replaced at 1200 vouches for the record of 1100, and not for the receipt of 1300.
        let early = try await story.edited("previous") { $0["until"] = 1200 }.bundle(identities: 0...1)
        #expect(try members(early, 1) == ["transactions[0].receipt.iat"])
        #expect(try members(early, 0) == [])
        // The end of the key between them ends the oldest one too, whatever the end of its own is.
        let between = try await story.edited("previous") { if $0["seq"] == 2 { $0["until"] = 1200 } }
            .bundle(identities: 0...2)
        #expect(try members(between, 2) == ["transactions[0].receipt.iat"])
        #expect(try members(between, 1) == [])
        let gap = try await story.edited("next") { $0["seq"] = 1 }.bundle(identities: 0...2)
        #expect(try members(gap, 0).contains("next"))
    }

    @Test("A record whose way is not that of its offer is contradicted, and so is a first one without digits")
    func ways() async throws {
        var story = try EvidenceStory()
        let bare = story.edited("offer") { $0["commit"] = "exchange" }.edited("record") { $0["commit"] = "exchange" }
        story.hasRenewal = true
        let renewed = story.edited("record.renewed") { $0["commit"] = "digits" }
        for (story, member) in [(bare, "enrolments[0].record.commit"), (renewed, "enrolments[1].record.commit")] {
            let report = try await EvidenceVerification.report(on: story.bundle(), trust: story.trust(0))
            #expect(report.contradicted.map(\.member) == [member], "\(report.contradicted.map(\.sentence))")
        }
    }

    @Test("A renewal without the endorsement of an old key for approving is flagged, or contradicted")
    func endorsements() async throws {
        var story = try EvidenceStory()
        story.hasRenewal = true
        let reset = try await story.edited("record.renewed") { $0["by"] = ["invite", "device", "reset"] }
            .bundle { object in
                var enrolments = object["enrolments"]?.array ?? []
                var last = enrolments.removeLast().object ?? JSONObject()
                last["endorsements"] = .array(Array((last["endorsements"]?.array ?? []).prefix(1)))
                object["enrolments"] = .array(enrolments + [.object(last)])
            }
        let flagged = try EvidenceVerification.report(on: reset, trust: story.trust(0))
        #expect(flagged.contradicted.map(\.sentence) == [])
        #expect(flagged.notEstablished.contains(.samePerson(sequence: 1)))
        for (message, name, value, member) in [
            ("endorse.sign", "enrol", Contradiction.otherHash, "enrolments[1].endorsements[1]"),
            ("endorse.device", "did", Contradiction.otherID, "enrolments[1].endorsements[0]"),
            ("record.renewed", "by", ["device"] as JSONValue, "enrolments[1].record.by"),
            ("record.renewed", "prev", Contradiction.otherHash, "enrolments[1].record.prev"),
            ("record.renewed", "seq", 2, "enrolments[1].record.seq"),
        ] {
            let bundle = try await story.edited(message) { $0[name] = value }.bundle()
            let report = try EvidenceVerification.report(on: bundle, trust: story.trust(0))
            #expect(report.contradicted.map(\.member).contains(member), "\(report.contradicted.map(\.sentence))")
        }
    }
}
