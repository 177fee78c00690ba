import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Testing

@Suite("Transaction signing: from the pinned identity key to the server's messages")
struct IssuerTrustTests {
    let issuer = "https://am.example/signing"
    let keys: [SoftwareSigningKey]
    let online: SoftwareSigningKey
    let encryption = SoftwareAgreementKey.generate()

    init() throws {
        keys = try (0..<4).map { _ in try SoftwareSigningKey.generate(.es256) }
        online = try .generate(.es256)
    }

    func identity(_ index: Int) throws -> ProtocolKey { try ProtocolKey(keys[index]) }

    func next(_ from: Int, _ to: Int, sequence: Int, issuer: String? = nil) async throws -> String {
        try await SignedMessage.sign(
            NextIdentity(issuer: issuer ?? self.issuer, issuedAt: 1, sequence: sequence, jwk: identity(to)),
            with: keys[from]
        ).compact
    }

    func certificate(
        by index: Int, generation: Int = 1, minimum: Int = 1, use: OnlineKeyUse = .sig, issuer: String? = nil,
        from start: Int = 1000
    ) async throws -> String {
        let key = try use == .sig ? ProtocolKey(online) : ProtocolKey(encryption)
        return try await SignedMessage.sign(
            KeyCertificate(
                issuer: issuer ?? self.issuer, issuedAt: start, expiresAt: start + 1000, use: use,
                generation: generation,
                minimum: minimum, jwk: key), with: keys[index]
        ).compact
    }

    func configuration(_ index: Int, next: [String] = [], certificates: [String]) throws -> IssuerConfiguration {
        try IssuerConfiguration(
            issuer: issuer, name: "Bank", identity: identity(index), next: next, certificates: certificates)
    }

    @Test("A device walks from its pin over every successor, and no other way")
    func walk() async throws {
        let chain = try await [next(0, 1, sequence: 1), next(1, 2, sequence: 2)]
        let certificates = try await [certificate(by: 2)]
        let good = try configuration(2, next: chain, certificates: certificates)
        for pin in 0...2 {
            let trust = try IssuerTrust(good, issuer: issuer, anchor: .pinned(identity(pin)))
            #expect(try trust.identity == identity(2))
            #expect(trust.certificates.count == 1)
        }
        #expect(throws: Never.self) {
            try IssuerTrust(good, issuer: issuer, anchor: .thumbprint(identity(2).thumbprint))
        }
        #expect(throws: Never.self) { try IssuerTrust(good, issuer: issuer, anchor: .none) }
        let untrusted = SigningProtocolError(.untrustedIdentity, "")
        #expect(throws: untrusted) { try IssuerTrust(good, issuer: issuer, anchor: .pinned(identity(3))) }
        #expect(throws: untrusted) {
            try IssuerTrust(good, issuer: issuer, anchor: .thumbprint(identity(0).thumbprint))
        }
        #expect(throws: SigningProtocolError(.wrongIssuer, "")) {
            try IssuerTrust(good, issuer: "https://other.example", anchor: .none)
        }
        let broken = try await [
            [chain[0]], [chain[1]], [], [chain[0], next(3, 2, sequence: 2)], [chain[0], next(1, 2, sequence: 3)],
            [next(0, 1, sequence: 1, issuer: "https://other.example"), chain[1]], ["nothing"],
            [next(0, 1, sequence: 1), next(1, 0, sequence: 2)],
        ]
        for steps in broken {
            let configuration = try configuration(2, next: steps, certificates: certificates)
            #expect(throws: untrusted) { try IssuerTrust(configuration, issuer: issuer, anchor: .pinned(identity(0))) }
        }
    }

    @Test("Certificates by another key, of another issuer, or withdrawn by min count for nothing")
    func certificates() async throws {
        let all = try await [
            certificate(by: 1), certificate(by: 0, issuer: "https://other.example"), certificate(by: 0, generation: 3),
            certificate(by: 0, generation: 4, minimum: 4, use: .enc), "nothing",
        ]
        let configuration = try configuration(0, certificates: all)
        let trust = try IssuerTrust(configuration, issuer: issuer, anchor: .pinned(identity(0)))
        #expect(trust.minimum == 4)
        #expect(trust.certificates.map(\.content.generation) == [4])
        #expect(try trust.signers(ProtocolKey(online).thumbprint).isEmpty)
        #expect(try trust.encryptionKey == ProtocolKey(encryption))
        let stored = try IssuerTrust(configuration, issuer: issuer, anchor: .pinned(identity(0)), minimum: 5)
        #expect(stored.minimum == 5 && stored.certificates.isEmpty && stored.encryptionKey == nil)
    }

    @Test("A reply is dropped that is for another request, another device, of another issuer, or out of its time")
    func replies() async throws {
        let trust = try await IssuerTrust(
            configuration(0, certificates: [certificate(by: 0)]), issuer: issuer, anchor: .none)
        let request = SigningHash.request("request")
        let did = SigningID(random: SystemRandom())
        func reply(
            issuer: String? = nil, audience: String? = nil, at time: Int = 1500, request hash: SigningHash? = nil,
            key: SoftwareSigningKey? = nil
        ) async throws -> String {
            let head = SigningReplyHead(
                issuer: issuer ?? self.issuer, audience: audience ?? did.text, issuedAt: time, request: hash ?? request)
            return try await SignedMessage.sign(
                TransactionList(head: head, tickets: [], more: false), with: key ?? online
            ).compact
        }
        func check(_ compact: String) throws {
            _ = try trust.reply(compact, as: TransactionList.self, audience: did.text, request: request)
        }
        let good = try await reply()
        #expect(throws: Never.self) { try check(good) }
        let bad = try await [
            (reply(issuer: "https://other.example"), SigningProtocolError.Code.wrongIssuer),
            (reply(audience: SigningID(random: SystemRandom()).text), .wrongAudience),
            (reply(at: 999), .outsideCertificate),
            (reply(at: 2001), .outsideCertificate), (reply(request: .request("other")), .wrongRequest),
            (reply(key: keys[0]), .unknownKey),
        ]
        for (compact, code) in bad {
            #expect(throws: SigningProtocolError(code, "")) { try check(compact) }
        }
    }

    @Test("A key that was certified again signs for the time of each of its certificates")
    func again() async throws {
        let trust = try await IssuerTrust(
            configuration(0, certificates: [certificate(by: 0), certificate(by: 0, generation: 2, from: 3000)]),
            issuer: issuer, anchor: .none)
        for (time, isGood) in [(1000, true), (2000, true), (2001, false), (2999, false), (3000, true), (4001, false)] {
            let head = SigningReplyHead(
                issuer: issuer, audience: SigningID(random: SystemRandom()).text, issuedAt: time,
                request: .request("request"))
            let list = try await SignedMessage.sign(TransactionList(head: head, tickets: [], more: false), with: online)
            if isGood {
                #expect(throws: Never.self) { try trust.verified(list.compact, as: TransactionList.self) }
            } else {
                #expect(throws: SigningProtocolError(.outsideCertificate, ""), "\(time)") {
                    try trust.verified(list.compact, as: TransactionList.self)
                }
            }
        }
    }

    @Test("A configuration may have members that are not known, and must have the others")
    func reading() async throws {
        let good = try await configuration(0, certificates: [certificate(by: 0)]).encoded()
        var object = try #require(JSONValue.parse(good).object)
        object["later"] = ["a": 1]
        #expect(throws: Never.self) { try IssuerConfiguration(reading: JSONValue.object(object).serializedBytes()) }
        for name in ["v", "iss", "name", "identity", "next", "certs"] {
            var changed = object
            changed[name] = nil
            #expect(throws: SigningProtocolError(.missingMember, "")) {
                try IssuerConfiguration(reading: JSONValue.object(changed).serializedBytes())
            }
        }
        object["v"] = [2]
        #expect(throws: SigningProtocolError(.versionUnsupported, "")) {
            try IssuerConfiguration(reading: JSONValue.object(object).serializedBytes())
        }
    }
}
