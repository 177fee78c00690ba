import AssentCore
import AssentSigningProtocol
import Testing

@Suite("Transaction signing: typed fields")
struct FieldValueTests {
    @Test(
        "A value has the text to show that the page says",
        arguments: [
            (FieldType.text, "a", "a"), (.party, "Bob", "Bob"), (.date, "2026-12-31", "2026-12-31"),
            (.amount, ["amount": "200.00", "currency": "EUR"], "200.00 EUR"),
            (.maxAmount, ["amount": "0", "currency": "USD"], "0 USD"),
            (.amount, ["amount": "0.000001", "currency": "BTC"], "0.000001 BTC"),
            (.account, ["iban": "DE02120300000000202051"], "DE02 1203 0000 0000 2020 51"),
            (.account, ["other": "account 7"], "account 7"), (.list, ["a", "b"], "a, b"),
        ] as [(FieldType, JSONValue, String)])
    func display(type: FieldType, json: JSONValue, shown: String) throws {
        let value = try FieldValue(json, type: type)
        #expect(value.display == shown)
        #expect(value.json == json && value.type == type)
    }

    @Test(
        "A server makes no document of a value that people read wrongly, though a device takes it",
        arguments: [
            (FieldType.text, " "), (.party, "\u{A0}\u{3000}"),
            (.party, .string("Bob" + String(repeating: " ", count: 150) + "and Eve")), (.text, "a    b"),
            (.account, ["other": "    "]), (.account, ["iban": "DE02120300000000202052"]),
            (.account, ["iban": "DE20120300000000202051"]), (.account, ["iban": "1202120300000000202051"]),
            (.account, ["iban": "DE02"]), (.date, "2026-02-30"), (.date, "2026-02-29"), (.date, "2100-02-29"),
            (.date, "2026-04-31"), (.list, ["a, b", "c"]), (.list, ["a", ", b"]), (.list, ["a,", "b"]),
            (.list, ["a", " b"]), (.list, ["a", "  "]), (.list, ["a,\u{A0}b", "c"]), (.list, ["a,\u{3000}b"]),
            (.list, ["a", "\u{202F}b"]), (.list, ["a, \u{301}b", "c"]),
            (.list, ["a,\u{301} b"]), (.list, ["a,\u{301}", "b"]),
            // Drawn like a comma: a low quotation mark, a letter of Lisu, a comma as wide as a Chinese character.
            (.list, ["a\u{201A} b", "c"]), (.list, ["a\u{201A}", "b"]), (.list, ["a\u{A4F9} b"]),
            (.list, ["a\u{FF0C} b"]),
        ] as [(FieldType, JSONValue)])
    func misread(type: FieldType, json: JSONValue) throws {
        let value = try FieldValue(json, type: type)
        #expect(throws: SigningProtocolError.self) { try value.checkReading(at: "/x") }
    }

    @Test(
        "What people read as it is makes a document",
        arguments: [
            (FieldType.text, "a   b"), (.party, "Müller, Hans"), (.party, "שלום"), (.account, ["other": "account 7"]),
            (.account, ["iban": "DE02120300000000202051"]), (.account, ["iban": "GB82WEST12345698765432"]),
            (.account, ["iban": "NO9386011117947"]), (.account, ["iban": "MT84MALT011000012345MTLCAST001S"]),
            (.date, "2028-02-29"), (.date, "2000-02-29"), (.date, "2026-12-31"), (.list, ["a,b", "c"]),
            (.list, ["a\u{FF0C}b", "\u{201A}a\u{2018} b"]), (.amount, ["amount": "0", "currency": "EUR"]),
        ] as [(FieldType, JSONValue)])
    func read(type: FieldType, json: JSONValue) throws {
        try FieldValue(json, type: type).checkReading(at: "/x")
    }

    @Test(
        "A value of another type, form or size is refused",
        arguments: [
            (FieldType.text, ""), (.text, 1), (.text, .string(String(repeating: "a", count: 201))), (.text, "a\nb"),
            (.text, "\u{202E}b"), (.party, ["a"]), (.date, "2026-13-01"), (.date, "2026-00-01"), (.date, "2026-01-32"),
            (.date, "2026-1-01"), (.date, "20260101"), (.date, "２026-01-01"),
            (.amount, "200.00 EUR"), (.amount, ["amount": "200.00"]), (.amount, ["currency": "EUR"]),
            (.amount, ["amount": "01", "currency": "EUR"]), (.amount, ["amount": "1.", "currency": "EUR"]),
            (.amount, ["amount": ".5", "currency": "EUR"]), (.amount, ["amount": "-1", "currency": "EUR"]),
            (.amount, ["amount": "1,000", "currency": "EUR"]), (.amount, ["amount": "1.0000001", "currency": "EUR"]),
            (.amount, ["amount": "1e3", "currency": "EUR"]),
            (.amount, ["amount": "1234567890123456789", "currency": "EUR"]),
            (.amount, ["amount": 1, "currency": "EUR"]),
            (.amount, ["amount": "1.2.3", "currency": "EUR"]), (.amount, ["amount": "", "currency": "EUR"]),
            (.amount, ["amount": "1", "currency": "eur"]), (.amount, ["amount": "1", "currency": "EURO"]),
            (.amount, ["amount": "1", "currency": "EUR", "note": "x"]), (.account, "DE02"),
            (.account, ["iban": "DE0"]), (.account, ["iban": "DE02 1203"]), (.account, ["iban": "de021203"]),
            (.account, ["iban": "DE02", "other": "x"]), (.account, [:]),
            (.account, ["other": .string(String(repeating: "1", count: 35))]), (.list, []), (.list, "a"),
            (.list, ["a", ""]),
            (.list, .array(Array(repeating: .string(String(repeating: "a", count: 190)), count: 11))),
            (.list, ["a", 1]), (.list, .array(Array(repeating: "a", count: 101))),
            (.list, .array(Array(repeating: .string(String(repeating: "a", count: 400)), count: 5))),
        ] as [(FieldType, JSONValue)])
    func refused(type: FieldType, json: JSONValue) {
        #expect(throws: SigningProtocolError.self) { try FieldValue(json, type: type) }
    }
}
