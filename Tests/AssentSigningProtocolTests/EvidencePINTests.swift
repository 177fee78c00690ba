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
        // Five minutes before the decision, to the second; half a minute after it.
        Contradiction("eval", "iat", 1000, "transactions[0].receipt.unlock"),
        Contradiction("eval", "iat", 1331, "transactions[0].receipt.unlock"),
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
        unlock("confirmed", 1259), unlock("confirmed", 1331),
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
}
