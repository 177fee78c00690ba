import AssentStore

extension SQLDatabaseContract {
    static let valueRules: [Rule] = [
        Rule("The smallest and the largest integers come back as they were") { database in
            for value in [Int64.min, -1, 0, 1, .max] {
                let rows = try await database.run([
                    SQLStatement("DELETE FROM notes"),
                    SQLStatement("INSERT INTO notes (id, count, level) VALUES ('a', \(value), \(value))"),
                    .read("SELECT count, level FROM notes WHERE count = \(value) AND level = \(value)"),
                ]).last
                let expected = [SQLRow(["count": .integer(value), "level": .integer(value)])]
                try expect(rows == expected, "\(value) came back changed")
            }
        },
        Rule("Bytes of every kind come back as they were, and no bytes are not NULL") { database in
            for (id, body) in [("none", []), ("all", Array(UInt8.min...UInt8.max))] {
                _ = try await database.run(insert(id, body: body))
                let rows = try await database.run(.read("SELECT body FROM notes WHERE id = \(id)"))
                try expect(rows == [SQLRow(["body": .blob(body)])], "\(body.count) bytes came back changed")
            }
        },
        Rule("A mebibyte of text and of bytes comes back as it was") { database in
            let text = String(repeating: "ß€", count: 1 << 18)
            let body = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            _ = try await database.run([
                insert("a", body: body),
                SQLStatement("UPDATE notes SET label = \(text) WHERE id = 'a'", expecting: .exactly(1)),
            ])
            let rows = try await database.run(.read("SELECT label, body FROM notes"))
            try expect(rows == [SQLRow(["label": .text(text), "body": .blob(body)])], "it came back changed")
        },
        Rule("Comparisons and sums come back as whole numbers") { database in
            _ = try await database.run([insert("a"), insert("b")])
            let rows = try await database.run(
                .read(
                    """
                    SELECT count(*) = 2 AS yes, count(*) > \(2) AS no, sum(count + \(7)) AS sum, max(count) AS most,
                        sum(count - \(123_456_789)) AS less, CASE WHEN max(id) = \("b") THEN \(1) ELSE \(2) END AS which
                    FROM notes
                    """))
            let expected: [String: SQLValue] = [
                "yes": 1, "no": 0, "sum": 14, "most": 0, "less": -246_913_578, "which": 1,
            ]
            try expect(rows == [SQLRow(expected)], "the row was \(rows)")
        },
        Rule("NULL can be an argument wherever a value can") { database in
            let none: String? = nil
            let number: Int? = nil
            let values: SQL = "\("a"), \(none), \([UInt8]?.none), \(number)"
            _ = try await database.run([
                SQLStatement("INSERT INTO notes (id, owner_id, body, level) SELECT \(values)", expecting: .exactly(1)),
                SQLStatement(
                    "UPDATE notes SET label = \(none), level = coalesce(\(number), 3)", expecting: .exactly(1)),
            ])
            let rows = try await database.run(
                .read("SELECT owner_id, body, label, level FROM notes WHERE \(none) IS NULL OR label = \(none)"))
            let expected: [String: SQLValue] = ["owner_id": .null, "body": .null, "label": .null, "level": 3]
            try expect(rows == [SQLRow(expected)], "the row was \(rows)")
        },
        Rule("NULL comes back as NULL, and is equal to nothing") { database in
            _ = try await database.run(insert("a"))
            let statement = SQLStatement.read("SELECT owner_id FROM notes WHERE id = 'a'")
            try expect(try await database.run(statement) == [SQLRow(["owner_id": .null])], "NULL became a value")
            let equal = SQLStatement.read("SELECT id FROM notes WHERE owner_id = \("")")
            try expect(try await database.run(equal).isEmpty, "NULL is equal to an empty text")
        },
        Rule("Keys are equal when their bytes are: case, accents and forms of one letter are different") { database in
            let ids = ["ana", "ANA", "aná", "ana\u{301}", "ana ", "\u{1F511}", ""]
            _ = try await database.run(ids.map { insert($0) })
            for id in ids {
                let rows = try await database.run(.read("SELECT id FROM notes WHERE id = \(id)"))
                let found = try rows.map { Array(try $0.text("id").utf8) }
                try expect(found == [Array(id.utf8)], "\(id.debugDescription) found \(found.count) keys")
            }
        },
        Rule("Texts are ordered by their bytes, whatever the language of the machine") { database in
            let ids = ["B", "a", "Z", "z", "é", "e", "\u{1F511}", "ﬀ", "10", "9"]
            _ = try await database.run(ids.map { insert($0) })
            let found = try await database.run(.read("SELECT id FROM notes ORDER BY id")).map { try $0.text("id") }
            let expected = ids.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
            try expect(found == expected, "the order was \(found)")
        },
    ]
}
