import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Testing

@Suite("Signing: what refusals and certificates mean for a device")
struct SigningCodeTests {
    @Test("Each refusal leads to its own row of the table of failures, and an unknown one is a refusal")
    func failures() {
        let expected: [(SigningErrorCode, CallRetry.Failure)] = [
            (.busy, .busy), (.unavailable, .unavailable), (.useNonce, .useNonce), (.unknownKey, .unknownKey),
            (.keyRetired, .keyRetired), (.rateLimited, .rateLimited), (.unlockRequired, .unlockRequired),
            (.transactionNotFetched, .notFetched), (.replay, .refused), (.badProof, .refused), (.locked, .refused),
            (.alreadyDecided, .refused), (.containerRevoked, .refused), (SigningErrorCode(rawValue: "later"), .refused),
        ]
        for (code, failure) in expected { #expect(CallRetry.Failure(code) == failure, "\(code)") }
    }

    @Test("The server's signed word is asked for wherever an unsigned one would lock, destroy or end something")
    func asking() {
        #expect(
            UnlockCeremony.asking == [
                .locked, .wait, .shredded, .wrongGeneration, .containerSuspect, .containerBlocked,
            ])
    }

    @Test("An issuer's name is an https URL with nothing in it that leads elsewhere")
    func issuers() {
        let long = "https://" + String(repeating: "a", count: 504)
        for name in ["https://a", "https://am.example:8443/am/signing", long] {
            #expect(IssuerName.isValid(name), "\(name.prefix(40))")
        }
        for name in [
            "", "https://", "https://a/", "http://a", "HTTPS://a", "https://a?b", "https://a#b", "https://b@a",
            "https://a\\b", "https://a b", "https://\u{e4}", "https://a\n", "https://{a}", long + "a", "https://a\"b",
            "https://<a", "https://a>", "https://a^b", "https://a`b", "https://a|b", "https://a}", "https://a\u{7f}b",
        ] {
            #expect(!IssuerName.isValid(name), "\(name.prefix(40))")
        }
    }

    @Test("A list of notices that are known names each once")
    func seen() throws {
        let (one, two) = (SigningID(random: SystemRandom()), SigningID(random: SystemRandom()))
        func read(_ seen: [SigningID]) throws -> ListBody {
            try ListBody(plaintext: ListBody(wait: 0, seen: seen).encoded())
        }
        #expect(try read([one, two]).seen == [one, two])
        #expect(throws: SigningProtocolError(.invalidMember, "")) { try read([one, two, one]) }
        #expect(throws: SigningProtocolError(.invalidMember, "")) {
            try read((0...Notice.limit).map { _ in SigningID(random: SystemRandom()) })
        }
        for (wait, isFine) in [(0, true), (25, true), (26, false)] {
            #expect(((try? ListBody(plaintext: ListBody(wait: wait).encoded())) != nil) == isFine)
        }
    }

    private struct Issuer {
        let identity: SoftwareSigningKey
        let name = "https://am.example/signing"

        init() throws { identity = try .generate(.es256) }

        func certificate(
            of key: ProtocolKey, use: OnlineKeyUse, generation: Int, minimum: Int = 1
        ) async throws -> String {
            let content = KeyCertificate(
                issuer: name, issuedAt: 1000, expiresAt: 2000, use: use, generation: generation, minimum: minimum,
                jwk: key)
            return try await SignedMessage.sign(content, with: identity).compact
        }

        func trust(_ certificates: [String]) throws -> IssuerTrust {
            try IssuerTrust(
                IssuerConfiguration(
                    issuer: name, name: "Bank", identity: ProtocolKey(identity), next: [], certificates: certificates),
                issuer: name, anchor: .none)
        }
    }

    @Test("Requests are encrypted to the newest key for that, and never to one that signs")
    func encryption() async throws {
        let issuer = try Issuer()
        let (old, new) = (SoftwareAgreementKey.generate(), SoftwareAgreementKey.generate())
        let signing = try ProtocolKey(SoftwareSigningKey.generate(.es256))
        let certificates = try await [
            issuer.certificate(of: signing, use: .sig, generation: 9),
            issuer.certificate(of: ProtocolKey(old), use: .enc, generation: 2),
            issuer.certificate(of: ProtocolKey(new), use: .enc, generation: 4),
        ]
        for list in [certificates, certificates.reversed()] {
            #expect(try issuer.trust(list).encryptionKey == ProtocolKey(new))
        }
        #expect(try issuer.trust([certificates[0]]).encryptionKey == nil)
    }

    @Test("A key that is certified for encryption only signs nothing")
    func use() async throws {
        let issuer = try Issuer()
        let key = try SoftwareSigningKey.generate(.es256)
        let ticket = try await SignedMessage.sign(
            Ticket(
                issuer: issuer.name, txn: SigningID(random: SystemRandom()), expiresAt: 1500, isClaim: true),
            with: key
        ).compact
        for (use, isGood) in [(OnlineKeyUse.sig, true), (.enc, false)] {
            let certificate = try await issuer.certificate(of: ProtocolKey(key), use: use, generation: 1)
            let trust = try issuer.trust([certificate])
            if isGood {
                #expect(throws: Never.self) { try trust.verified(ticket, as: Ticket.self) }
            } else {
                #expect(throws: SigningProtocolError(.unknownKey, "")) { try trust.verified(ticket, as: Ticket.self) }
            }
        }
    }

    @Test("What a device has stored counts only from the lowest generation on, and under the pinned key")
    func stored() async throws {
        let (issuer, other) = (try Issuer(), try Issuer())
        let key = try ProtocolKey(SoftwareSigningKey.generate(.es256))
        let certificates = try await [
            issuer.certificate(of: key, use: .sig, generation: 2),
            issuer.certificate(of: key, use: .sig, generation: 3), other.certificate(of: key, use: .sig, generation: 4),
        ]
        for (minimum, generations) in [(2, [2, 3]), (3, [3]), (4, [])] {
            let trust = try IssuerTrust(
                issuer: issuer.name, identity: ProtocolKey(issuer.identity), minimum: minimum,
                certificates: certificates)
            #expect(trust.certificates.map(\.content.generation) == generations)
            #expect(trust.minimum == minimum)
        }
        let renamed = try IssuerTrust(
            issuer: "https://other.example", identity: ProtocolKey(issuer.identity), minimum: 1,
            certificates: certificates)
        #expect(renamed.certificates.isEmpty)
    }
}
