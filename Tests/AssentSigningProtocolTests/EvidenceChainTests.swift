import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Testing

/// What somebody with an identity key that does not count any more, or never did, could put into a bundle.
@Suite("Transaction signing: evidence and chains of identity keys that lead nowhere")
struct EvidenceChainTests {
    let story: EvidenceStory

    init() throws { story = try EvidenceStory() }

    private func members(_ bundle: EvidenceBundle, _ trust: Int) throws -> [String] {
        try EvidenceVerification.report(on: bundle, trust: story.trust(trust)).contradicted.map(\.member)
    }

    private func next(_ from: Int, _ to: Int, sequence: Int = 1) async throws -> JSONValue {
        let content: JSONObject = [
            "v": 1, "iss": .string(story.issuer), "iat": 5000, "seq": .integer(sequence),
            "jwk": try story.jwk(story.identities[to]),
        ]
        return .string(try await story.message("own next", .next, story.identities[from], content))
    }

    private func previous(_ from: Int, _ to: Int, sequence: Int = 1) async throws -> JSONValue {
        let content: JSONObject = [
            "v": 1, "iss": .string(story.issuer), "iat": 5000, "seq": .integer(sequence),
            "jwk": try story.jwk(story.identities[to]), "until": 5000,
        ]
        return .string(try await story.message("own previous", .previous, story.identities[from], content))
    }

    @Test("A key that names itself as the successor, or another key as that, certifies nothing")
    func ownNext() async throws {
        for link in try await [next(1, 1), next(0, 2), next(1, 0), next(2, 1)] {
            let bundle = try await story.bundle(identities: 0...1, certifier: 1) { $0["next"] = [link] }
            let found = try members(bundle, 0)
            #expect(found.contains("certs[0]"), "\(found)")
        }
        let good = try await next(0, 1)
        #expect(try await members(story.bundle(identities: 0...1, certifier: 1) { $0["next"] = [good] }, 0) == [])
    }

    @Test("A key that was replaced does not vouch for itself, and neither does a stranger")
    func ownPrevious() async throws {
        for link in try await [previous(0, 0), previous(1, 2), previous(0, 1), previous(2, 0)] {
            let bundle = try await story.bundle(identities: 0...1) { $0["previous"] = [link] }
            let found = try members(bundle, 1)
            #expect(found.contains("certs[0]"), "\(found)")
        }
        let good = try await previous(1, 0)
        #expect(try await members(story.bundle(identities: 0...1) { $0["previous"] = [good] }, 1) == [])
    }

    @Test("Behind a link that is missing nothing counts, whatever follows it")
    func brokenChain() async throws {
        let last = try await next(1, 2, sequence: 2)
        let forwards = try await story.bundle(identities: 0...2, certifier: 2) { $0["next"] = [last] }
        #expect(try members(forwards, 0) == ["identity[1]", "certs[0]"] + Self.notCertified)
        let first = try await previous(1, 0)
        let backwards = try await story.bundle(identities: 0...2) { $0["previous"] = [first] }
        #expect(try members(backwards, 2) == ["identity[1]", "certs[0]"] + Self.notCertified)
    }

    /// What follows when no online key counts.
    private static let notCertified = ["enrolments[0].record", "enrolments[0].offer", "transactions[0].receipt"]

    @Test("Links of another issuer lead nowhere")
    func otherIssuer() async throws {
        let other = JSONValue.string("https://other.example")
        let forwards = try await story.edited("next") { $0["iss"] = other }.bundle(identities: 0...1, certifier: 1)
        #expect(try members(forwards, 0).prefix(2) == ["next[0].iss", "identity[1]"])
        let backwards = try await story.edited("previous") { $0["iss"] = other }.bundle(identities: 0...1)
        #expect(try members(backwards, 1).prefix(2) == ["previous[0].iss", "identity[0]"])
    }

    @Test("Without a trusted key the newest one is taken, and what was signed in its predecessor's last second is good")
    func newest() async throws {
        let bundle = try await story.bundle(identities: 0...2)
        let report = EvidenceVerification.report(on: bundle, trust: nil)
        #expect(try report.root == story.trust(2))
        #expect(report.contradicted.map(\.sentence) == [] && report.exitStatus == 64)
        let last = try await story.edited("previous") { $0["until"] = 1300 }.bundle(identities: 0...1)
        #expect(try members(last, 1) == [])
    }

    @Test("An online key that was certified twice signs in the time of each certificate, and in no other")
    func certifiedTwice() async throws {
        func bundle(_ range: ClosedRange<Int>, with edit: @escaping EvidenceStory.Edit) async throws -> EvidenceBundle {
            let other = try await story.message(
                "other cert", .certificate, story.identities[0],
                [
                    "v": 1, "iss": .string(story.issuer), "iat": .integer(range.lowerBound),
                    "exp": .integer(range.upperBound), "use": "sig", "gen": 2, "min": 1,
                    "jwk": try story.jwk(story.online),
                ])
            return try await story.edited("cert", edit).bundle { object in
                object["certs"] = .array([.string(other)] + (object["certs"]?.array ?? []))
            }
        }
        #expect(try await members(bundle(500...600) { _ in }, 0) == [])
        #expect(try await members(bundle(1250...2000) { $0["exp"] = 1249 }, 0) == [])
        // The receipt is of 1300.
        #expect(try await members(bundle(1301...2000) { $0["exp"] = 1299 }, 0) == ["transactions[0].receipt.iat"])
    }

    @Test("Keys are said to be certified only where each certificate is")
    func certified() async throws {
        func isCertified(_ story: EvidenceStory) async throws -> Bool {
            try await EvidenceVerification.report(on: story.bundle(), trust: story.trust(0)).established.contains {
                if case .certified = $0 { true } else { false }
            }
        }
        #expect(try await isCertified(story))
        #expect(try await !isCertified(story.edited("cert") { $0["iss"] = "https://other.example" }))
        #expect(try await !isCertified(story.signed("cert", by: story.thief)))
    }
}
