import AssentCore
import AssentSigningProtocol
import TestSupport
import Testing

@Suite("Transaction signing: passwords")
struct PasswordTests {
    /// Gives the same bytes again and again.
    struct Fixed: RandomSource {
        let fixed: [UInt8]
        func bytes(_ count: Int) -> [UInt8] { Array(fixed.prefix(count)) }
    }

    private let cost: PasswordCost

    init() throws { cost = try #require(PasswordCost(logN: 14, r: 8, p: 1)) }

    // MARK: Derivations

    private func vectorContext(_ vectors: Vectors) throws -> SealedKeyContext {
        try SealedKeyContext(
            mode: .assisted, issuer: vectors.issuer, did: vectors.message("offer", as: Offer.self).content.did,
            slot: .signing, kid: vectors.publicKey("sign").thumbprint, generation: 0,
            cost: #require(PasswordCost(logN: 15, r: 8, p: 1)), salt: vectors.bytes("salt"))
    }

    @Test("The page's vectors: scrypt, the sealing key, and the blob")
    func vectors() throws {
        let vectors = try Vectors.load()
        let context = try vectorContext(vectors)
        let s = try #require(NormalizedPassword(Secret("271828"))).stretched(salt: context.salt, cost: context.cost)
        #expect(try s.revealBytes() == vectors.bytes("s = scrypt(PIN)"))
        let kek = try context.key(s: s, output: Secret(bytes: vectors.bytes("o = OPRF output")))
        #expect(try kek.revealBytes() == vectors.bytes("KEK"))
        let blob = try vectors.bytes("blob")
        let content = try SealedKey.open(blob, in: context, with: kek)
        #expect(content.scalar.revealBytes() == vectors.scalars["sign"])
        #expect(content.history.isEmpty)
        let nonce = Array(blob.dropFirst(context.associatedData.count).prefix(12))
        #expect(try SealedKey.seal(content, in: context, with: kek, random: Fixed(fixed: nonce)) == blob)
    }

    @Test("The bodies of unlock and of its confirmation are read and written as the page has them")
    func bodies() async throws {
        let vectors = try Vectors.load()
        let did = try vectors.message("offer", as: Offer.self).content.did.text
        func plaintext(_ name: String) async throws -> [UInt8] {
            try await SealedEnvelope(vectors.text(name)).opened(
                with: vectors.agreementKey("encryption"), content: .request, sender: did, recipient: vectors.issuer)
        }
        let unlock = try await UnlockBody(plaintext: plaintext("unlock body"))
        #expect(try await unlock.encoded() == plaintext("unlock body"))
        #expect(try unlock.r.revealBytes() == vectors.bytes("ratchet r"))
        let confirm = try await ConfirmEvaluationBody(plaintext: plaintext("confirm slot body"))
        #expect(try await confirm.encoded() == plaintext("confirm slot body"))
        #expect(try confirm.confirmation == vectors.compact("confirm"))
        #expect(try confirm.evaluation == vectors.compact("eval.unlock"))
    }

    @Test("A blob opens in its own place and with its own key only, and no changed bit opens")
    func sealing() throws {
        let vectors = try Vectors.load()
        let context = try vectorContext(vectors)
        let kek = try Secret(bytes: vectors.bytes("KEK"))
        let content = SealedKeyContent(
            scalar: Secret(bytes: 1...32), passwordTime: 1_790_000_000,
            history: [
                .init(salt: [UInt8](repeating: 7, count: 16), s: Secret(bytes: 32...63)),
                .init(salt: [UInt8](repeating: 8, count: 16), s: Secret(bytes: 64...95)),
            ])
        let blob = try SealedKey.seal(content, in: context, with: kek, random: SystemRandom())
        let opened = try SealedKey.open(blob, in: context, with: kek)
        #expect(opened.scalar == content.scalar && opened.passwordTime == content.passwordTime)
        #expect(opened.history.map(\.s) == content.history.map(\.s))
        #expect(opened.history.map(\.salt) == content.history.map(\.salt))
        func refused(_ code: SigningProtocolError.Code, _ blob: [UInt8], _ context: SealedKeyContext, _ kek: Secret) {
            let error = #expect(throws: SigningProtocolError.self) {
                try SealedKey.open(blob, in: context, with: kek)
            }
            #expect(error?.code == code)
        }
        refused(.decryptionFailed, blob, context, Secret(bytes: [UInt8](repeating: 1, count: 32)))
        for elsewhere in [
            SealedKeyContext(
                mode: .local, issuer: context.issuer, did: context.did, slot: .signing, kid: context.kid,
                generation: 0, cost: context.cost, salt: context.salt),
            SealedKeyContext(
                mode: .assisted, issuer: context.issuer, did: context.did, slot: .signing, kid: context.kid,
                generation: 1, cost: context.cost, salt: context.salt),
            SealedKeyContext(
                mode: .assisted, issuer: context.issuer, did: context.did, slot: .session, kid: context.kid,
                generation: 0, cost: context.cost, salt: context.salt),
        ] { refused(.wrongRecipient, blob, elsewhere, kek) }
        let length = context.associatedData.count
        for index in blob.indices {
            var changed = blob
            changed[index] ^= 1
            refused(index < length ? .wrongRecipient : .decryptionFailed, changed, context, kek)
        }
        for count in 0..<(length + 29) {
            refused(count < length ? .wrongRecipient : .malformed, Array(blob.prefix(count)), context, kek)
        }
    }

    @Test("A slot that needs the server has no key without the server's part, and one of the device alone none with it")
    func mixed() throws {
        let base = try vectorContext(Vectors.load())
        let (s, o) = (Secret(bytes: 0..<32), Secret(bytes: 0..<48))
        for (mode, output) in [(PasswordMode.assisted, nil), (.local, o)] {
            let context = SealedKeyContext(
                mode: mode, issuer: base.issuer, did: base.did, slot: .signing, kid: base.kid, generation: 3,
                cost: cost, salt: base.salt)
            #expect(throws: SigningProtocolError(.modeUnsupported, "")) { try context.key(s: s, output: output) }
        }
    }

    @Test("Python derives the same keys and opens our blob, in both modes", .enabled(if: PythonPeer.mustRun))
    func python() throws {
        let vectors = try Vectors.load()
        for (mode, name) in [(PasswordMode.local, "local"), (.assisted, "assisted")] {
            let base = try vectorContext(vectors)
            let context = SealedKeyContext(
                mode: mode, issuer: base.issuer, did: base.did, slot: .signing, kid: base.kid, generation: 3,
                cost: cost, salt: base.salt)
            let s = try #require(NormalizedPassword(Secret("pässwörd 1"))).stretched(salt: base.salt, cost: cost)
            let o = Secret(bytes: 0..<48)
            let kek = try context.key(s: s, output: mode == .assisted ? o : nil)
            let content = SealedKeyContent(scalar: Secret(bytes: 1...32), passwordTime: 5, history: [])
            let blob = try SealedKey.seal(content, in: context, with: kek, random: SystemRandom())
            let answer = try PythonPeer.run(
                """
                import sys
                iss, did, kid, salt, blob, mode = sys.argv[1:]
                salt, kdf, where = bytes.fromhex(salt), "$scrypt$ln=14,r=8,p=1", (iss, did, "signing", kid, 3)
                s = pin.scrypt("pa\\u0308sswo\\u0308rd 1", salt, kdf)
                kek = (framing.kek_local(*where, salt, s) if mode == "local"
                       else framing.kek_assisted(*where, salt, s, bytes(range(48))))
                scalar = pin.unseal(kek, pin.associated(mode, *where, kdf, salt), bytes.fromhex(blob))
                message = framing.oprf_input(iss, did, "signing", 3, s)
                print(scalar.to_bytes(32, "big").hex(), message.hex())
                """,
                [base.issuer, base.did.text, base.kid.text, Hex.encode(base.salt), Hex.encode(blob), name])
            let input = PasswordKeys.oprfInput(issuer: base.issuer, did: base.did, slot: .signing, generation: 3, s: s)
            #expect(answer == "\(Hex.encode(1...32)) \(Hex.encode(input.revealBytes()))")
        }
    }

    // MARK: Rules

    private func broken(_ password: String, _ change: (inout PasswordRules) -> Void = { _ in }) throws -> PasswordRule?
    {
        var rules = PasswordRules(minLength: 4, maxLength: 12)
        change(&rules)
        return rules.broken(by: try #require(NormalizedPassword(Secret(password))))
    }

    @Test("Lengths are counted in Unicode scalars after normalisation, and kinds of characters one by one")
    func lengths() throws {
        #expect(try broken("123") == .minimumLength(4))
        #expect(try broken("1234567890123") == .maximumLength(12))
        #expect(try broken("äöü") == .minimumLength(4))
        // Three letters with their marks apart are three scalars once they are normalised.
        #expect(try broken("a\u{308}o\u{308}u\u{308}") == .minimumLength(4))
        #expect(try broken("1234") == nil)
        let cases: [(String, PasswordCharacters, Int, Bool)] = [
            ("abcd", .upper, 1, false), ("abCd", .upper, 1, true), ("ABCD", .lower, 1, false),
            ("1234", .alpha, 1, false), ("12é4", .alpha, 1, true), ("abcd", .numeric, 1, false),
            ("abc9", .numeric, 1, true), ("ab³d", .numeric, 1, false), ("abcd", .nonAlpha, 1, false),
            ("ab-d", .nonAlpha, 1, true), ("ab4d", .nonAlpha, 1, true),
        ]
        for (password, kind, count, isFine) in cases {
            #expect(
                try broken(password) { $0.least[kind] = count } == (isFine ? nil : .minimum(kind, count)), "\(password)"
            )
        }
        #expect(try broken("ab12") { $0.most[.numeric] = 1 } == .maximum(.numeric, 1))
        #expect(NormalizedPassword(Secret("")) == nil)
        #expect(NormalizedPassword(Secret(bytes: [0xFF, 0xFE, 0x31, 0x32])) == nil)
        #expect(NormalizedPassword(Secret(String(repeating: "a", count: 129))) == nil)
        #expect(NormalizedPassword(Secret(String(repeating: "a", count: 128))) != nil)
    }

    @Test("Runs, one character, and one piece again and again are refused where they are not allowed")
    func sequences() throws {
        let runs = [
            "1234", "4321", "567890", "0987", "1111", "aaaa", "abcd", "DCBA", "qwert", "poiu", "1212", "123123",
            "abcabc", "asdf",
        ]
        for run in runs { #expect(try broken(run) { $0.sequences = false } == .sequence, "\(run)") }
        for run in runs { #expect(try broken(run) == nil, "\(run)") }
        for fine in ["1235", "271828", "7291", "12341", "aaab", "qwer7"] {
            #expect(try broken(fine) { $0.sequences = false } == nil, "\(fine)")
        }
    }

    @Test("Common passwords and dates are refused where they are not allowed")
    func common() throws {
        for common in [
            "2580", "0852", "123321", "Password", "159753", "1984", "2405", "0524", "240599", "990524",
            "24051999", "19990524", "12341234", "1900", "2049", "2902", "3101",
        ] {
            #expect(try broken(common) { $0.common = false } == .common, "\(common)")
            #expect(try broken(common) == nil, "\(common)")
        }
        for fine in [
            "7391", "271828", "83920174", "4792", "3262", "tr4in-spotter", "1899", "2050", "3102", "1332", "3104x",
        ] {
            #expect(
                try broken(fine) {
                    $0.common = false
                    $0.maxLength = 20
                } == nil, "\(fine)")
        }
    }

    @Test("The mode silent is refused as unsupported, and another unknown one as unknown")
    func silent() throws {
        func read(_ mode: String) throws -> ProtectionPolicy {
            let text = """
                {"id": "pin", "type": "password", "mode": "\(mode)", "kdf": "$scrypt$ln=15,r=8,p=1",
                 "password": {"minLength": 6, "maxLength": 12, "sequences": false, "common": false, "history": 3,
                 "minAge": 0, "maxAge": 0, "cache": 0}, "lock": {"type": "none"}}
                """
            return try ProtectionPolicy(plaintext: Array(text.utf8))
        }
        #expect(throws: Never.self) { try read("local") }
        for (mode, code) in [("silent", SigningProtocolError.Code.modeUnsupported), ("loud", .invalidMember)] {
            let error = #expect(throws: SigningProtocolError.self) { try read(mode) }
            #expect(error?.code == code)
        }
    }
}
