import AssentStore
import Testing

@Suite("A row of a result")
struct SQLRowTests {
    let row = SQLRow(["text": "a", "integer": 7, "blob": .blob([1]), "null": .null])

    @Test("Columns are read as what they are")
    func reads() throws {
        #expect(try row.text("text") == "a")
        #expect(try row.integer("integer") == 7)
        #expect(try row.bool("integer"))
        #expect(try row.blob("blob") == [1])
        #expect(try row.optionalText("null") == nil)
        #expect(try row.optionalInteger("null") == nil)
        #expect(try row.optionalBlob("null") == nil)
    }

    @Test("A column of another type, NULL or missing is reported as corrupt", arguments: ["blob", "null", "missing"])
    func refusesOtherTypes(column: String) {
        #expect(throws: StoreError(.corrupt, "")) { try row.text(column) }
        #expect(throws: StoreError(.corrupt, "")) { try row.integer(column) }
        #expect(throws: StoreError(.corrupt, "")) { try row.bool(column) }
    }

    @Test("An optional column must be there and of its type")
    func refusesMissingOptionals() {
        #expect(throws: StoreError(.corrupt, "")) { try row.optionalText("missing") }
        #expect(throws: StoreError(.corrupt, "")) { try row.optionalText("integer") }
        #expect(throws: StoreError(.corrupt, "")) { try row.optionalInteger("text") }
        #expect(throws: StoreError(.corrupt, "")) { try row.optionalBlob("text") }
        #expect(throws: StoreError(.corrupt, "")) { try row.blob("text") }
    }

    @Test("A number with which nothing could be computed is reported as corrupt", arguments: [1, -1] as [Int64])
    func refusesExtremes(sign: Int64) throws {
        let largest: Int64 = sign << 53
        let row = SQLRow([
            "largest": .integer(largest), "beyond": .integer(largest + sign), "last": .integer(sign > 0 ? .max : .min),
        ])
        #expect(try row.integer("largest") == largest)
        for column in ["beyond", "last"] {
            #expect(throws: StoreError(.corrupt, "")) { try row.integer(column) }
            #expect(throws: StoreError(.corrupt, "")) { try row.optionalInteger(column) }
            #expect(throws: StoreError(.corrupt, "")) { try row.bool(column) }
        }
    }

    @Test("Values are made of what Swift has")
    func values() {
        #expect(SQLValue(String?.none) == .null)
        #expect(SQLValue(Int?.some(3)) == .integer(3))
        #expect(SQLValue(UInt64?.some(.max)) == .integer(.max))
        #expect(SQLValue(true) == .integer(1))
        #expect(SQLValue([UInt8]?.some([2])) == .blob([2]))
    }

    @Test("A text with U+0000 is told from one without, whatever its length and wherever that stands")
    func zero() {
        for text in ["", "a", "fifteen letters", "a text that is too long to stand in a value itself", "é 0 \\0"] {
            #expect(!SQLValue.text(text).hasNUL)
            for length in 0...text.count {
                #expect(SQLValue.text("\(text.prefix(length))\0\(text.dropFirst(length))").hasNUL)
            }
        }
        #expect(!SQLValue.blob([0]).hasNUL && !SQLValue.integer(0).hasNUL && !SQLValue.null.hasNUL)
    }
}
