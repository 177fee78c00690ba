import Testing

@testable import AssentStore

@Suite("Texts in SQL that are put together once")
struct SQLTemplateTests {
    private static let own = "own"

    private static func sql(_ name: String, _ now: Int64) -> SQL {
        "SELECT a FROM t WHERE b > \(now) AND c = \(name) AND d = \(own) AND e < \(now)"
    }

    private static let template = SQLTemplate(sql("name", .min), standIns: ["name", .integer(.min)])

    @Test("With values it is the statement that is put together with them", arguments: [0, 1, 253_402_300_799])
    func values(now: Int64) {
        for name in ["alice", "", "name", "\u{1}?1$1' OR 1 = 1"] {
            let made = Self.template.with([.text(name), .integer(now)])
            let whole = Self.sql(name, now)
            #expect(made == whole)
            #expect(made.hashValue == whole.hashValue)
            for sign in ["?", "$", ":"] as [Unicode.Scalar] {
                #expect(made.text(parameter: sign) == whole.text(parameter: sign))
            }
        }
    }

    @Test("What is made of its text has parameters and NULL of its own")
    func parts() {
        let now: Int64 = 7
        let made = Self.template.with([.null, .integer(now)])
        let whole: SQL = "SELECT a FROM t WHERE b > \(now) AND c = NULL AND d = \(Self.own) AND e < \(now)"
        #expect(made.withoutNulls() == whole)
        #expect(made.withoutNulls().text().hasSuffix("b > ?1 AND c = NULL AND d = ?2 AND e < ?3"))
        let joined: SQL = "\(Self.template.with(["a", 1])) UNION \(Self.template.with(["b", 2]))"
        #expect(joined.text(parameter: "$").hasSuffix("b > $5 AND c = $6 AND d = $7 AND e < $8"))
    }
}
