import AssentStore

extension SQLDatabaseContract {
    static let valueRules: [Rule] = [
        Rule("The smallest and the largest integers come back as they were") { database in
            for value in [Int64.min, -1, 0, 1, .max] {
                let rows = try await database.run([
                    SQLStatement("DELETE FROM notes"),
                    SQLStatement("INSERT INTO notes (id, count) VALUES ('a', \(value))"),
                    .read("SELECT count FROM notes"),
                ]).last
                try expect(rows == [SQLRow(["count": .integer(value)])], "\(value) came back changed")
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
                SQLStatement("INSERT INTO owners (id) VALUES (\(text))", expecting: .exactly(1)),
                insert("a", owner: text, body: body),
            ])
            let rows = try await database.run(.read("SELECT owner_id, body FROM notes"))
            try expect(rows == [SQLRow(["owner_id": .text(text), "body": .blob(body)])], "it came back changed")
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
