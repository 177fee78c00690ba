import AssentCore
import AssentSigningProtocol
import Testing

@Suite("Transaction signing: the invite's code")
struct InviteCodeTests {
    let canonical = "ZFECEULFQPOBFTEPB2BQ"

    @Test(
        "A code is taken as people type it",
        arguments: [
            "ZFECEULFQPOBFTEPB2BQ", "ZFECE-ULFQP-OBFTE-PB2BQ", "zfece ulfqp obfte pb2bq", " zFeCe--ULFQP OBFTE-PB2BQ ",
            "ZFECEULFQP0BFTEPB2BQ", "ZFECEULFQPO8FTEP82BQ",
        ])
    func typed(text: String) throws {
        #expect(InviteCode(typed: text)?.canonical.reveal() == canonical)
    }

    @Test("One wrong or missing character, two that are swapped, and other characters are refused")
    func mistakes() {
        let characters = Array(canonical)
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
        for index in characters.indices {
            for letter in alphabet where letter != characters[index] {
                var changed = characters
                changed[index] = letter
                #expect(InviteCode(typed: String(changed)) == nil, "\(index): \(letter)")
            }
            var shorter = characters
            shorter.remove(at: index)
            #expect(InviteCode(typed: String(shorter)) == nil)
            if index + 1 < characters.count, characters[index] != characters[index + 1] {
                var swapped = characters
                swapped.swapAt(index, index + 1)
                #expect(InviteCode(typed: String(swapped)) == nil)
            }
        }
        for text in [
            "", canonical + "A", canonical + canonical, "９" + canonical.dropFirst(), "Ｚ" + canonical.dropFirst(),
        ] {
            #expect(InviteCode(typed: text) == nil)
        }
    }

    @Test(
        "PowerAuth's published samples of its activation codes, which have the same form",
        arguments: [
            ("AAAAA-AAAAA-AAAAA-AAAAA", "AAAAA-AAAAA-AAAAA-AAAAB"),
            ("MMMMM-MMMMM-MMMMM-MUTOA", "MMMMM-MMMMM-AMMMM-MUTOA"),
            ("VVVVV-VVVVV-VVVVV-VTFVA", "VVVVV-VVXVV-VVVVV-VTFVA"),
            ("55555-55555-55555-55YMA", "55555-55455-55555-55YMA"),
            ("ATQAZ-WJ7ZG-FWA7J-QFAJQ", "ATQAZ-WJ7ZG-FWA6J-QFAJQ"),
            ("MXSYF-LLQJ7-PS6LF-E2FMQ", "MXSYF-LBQJ7-PS6LF-E2FMQ"),
            ("ZKMVN-4IMFK-FLSYX-ARRGA", "ZKMVN-4IMFK-FLSXX-ARRGA"),
            ("NQHGX-LNM2S-EQ4NT-G3NAA", "NQHGX-LNM2S-FQ4NT-G3NAA"),
        ])
    func powerAuth(right: String, wrong: String) {
        #expect(InviteCode(typed: right)?.shown.reveal() == right)
        #expect(InviteCode(typed: wrong) == nil)
    }

    @Test("Messages have only the canonical form, whose last character has four zero bits")
    func canonicalForm() {
        #expect(InviteCode(canonical: canonical) != nil)
        for text in [
            canonical.lowercased(), "ZFECE-ULFQP-OBFTE-PB2BQ", canonical + "=", String(canonical.dropLast()) + "R",
        ] {
            #expect(InviteCode(canonical: text) == nil, "\(text)")
        }
    }

    @Test("A new code is read again, and its descriptions do not show it")
    func new() throws {
        for _ in 0..<50 {
            let code = InviteCode(random: SystemRandom())
            #expect(InviteCode(typed: code.shown.reveal()) == code)
            #expect(
                !"\(code)".contains(code.canonical.reveal()) && !"\(code.canonical)".contains(code.canonical.reveal()))
            let key = Secret("key")
            #expect(code.lookup(key: key, issuer: "https://a").count == 32)
            #expect(code.lookup(key: key, issuer: "https://a") != code.lookup(key: key, issuer: "https://b"))
        }
        #expect(InviteCode(bytes: [1, 2, 3]) == nil)
    }
}
