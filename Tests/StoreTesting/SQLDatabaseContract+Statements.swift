import AssentStore

extension SQLDatabaseContract {
    static let transactionRules: [Rule] = [
        Rule("Rows come back in the order of the statements, and later statements see what earlier ones wrote") {
            database in
            let results = try await database.run([
                insert("a", body: [0, 255]),
                SQLStatement(
                    "UPDATE notes SET count = count + 41 WHERE id = 'a' RETURNING count", expecting: .exactly(1)),
                .read("SELECT id, owner_id, body FROM notes"),
            ])
            let rows = [SQLRow(["id": "a", "owner_id": .null, "body": .blob([0, 255])])]
            try expect(results == [[], [SQLRow(["count": 41])], rows], "the rows were \(results)")
        },
        Rule("No statements are a transaction without an effect") { database in
            try expect(try await database.run([]).isEmpty, "rows came from nowhere")
        },
        Rule("A statement that does not affect what it must takes all others back, whichever it is") { database in
            let touchMissing = SQLStatement(
                "UPDATE notes SET count = 1 WHERE id = 'missing'", expecting: .exactly(1))
            for position in 0...2 {
                var statements = [insert("a"), insert("b")]
                statements.insert(touchMissing, at: position)
                let error = try await expectError(.unexpectedCount) { try await database.run(statements) }
                try expect(error.statement == position, "statement \(error.statement ?? -1), not \(position)")
                try await expectNotes(0, in: database)
            }
        },
        Rule("A statement that fails takes all others back, whichever it is") { database in
            for position in 0...2 {
                var statements = [insert("a"), insert("b")]
                statements.insert(insert("c", owner: "nobody"), at: position)
                try await expectError(.constraint) { try await database.run(statements) }
                try await expectNotes(0, in: database)
            }
        },
        Rule("A single statement that changes too much is taken back as well") { database in
            _ = try await database.run([insert("a"), insert("b")])
            for sql: SQL in ["DELETE FROM notes", "DELETE FROM notes RETURNING id"] {
                try await expectError(.unexpectedCount) {
                    try await database.run(SQLStatement(sql, expecting: .exactly(1)))
                }
            }
            try await expectNotes(2, in: database)
        },
        Rule("A statement that reads is held to its number of rows, too") { database in
            _ = try await database.run(insert("a"))
            let missing = SQLStatement.read("SELECT id FROM notes WHERE id = 'missing'", expecting: .exactly(1))
            try await expectError(.unexpectedCount) { try await database.run(missing) }
            let error = try await expectError(.unexpectedCount) { try await database.run([insert("b"), missing]) }
            try expect(error.statement == 1, "another statement was named")
            try await expectNotes(1, in: database)
        },
        Rule("A statement that says it only reads cannot write") { database in
            _ = try await database.run(insert("a"))
            let disguised: [SQL] = [
                "DELETE FROM notes", "INSERT INTO owners (id) VALUES ('a') RETURNING id",
            ]
            for sql in disguised {
                guard (try? await database.run(.read(sql))) == nil else { throw Violation("\(sql.text()) was run") }
            }
            try await expectNotes(1, in: database)
            try expect(try await count("owners", in: database) == 0, "an owner was stored")
        },
    ]

    static let errorRules: [Rule] = [
        Rule("A taken key and a missing parent are constraint errors, and nothing of the transaction stays") {
            database in
            _ = try await database.run(insert("a"))
            try await expectError(.constraint) { try await database.run([insert("b"), insert("a")]) }
            try await expectError(.constraint) { try await database.run(insert("c", owner: "nobody")) }
            try await expectNotes(1, in: database)
        },
        Rule("A statement that cannot be run is this program's fault: not one that another try would help") {
            database in
            let unrunnable: [SQL] = [
                "SELEC \(1)", "SELECT * FROM nothing", "UPDATE notes SET nothing = \(1)", "SELECT \("a") FROM",
                "DELETE FROM notes WHERE id =", "",
            ]
            for sql in unrunnable {
                try await expectError(.statement) { try await database.run(SQLStatement(sql)) }
            }
        },
        Rule("A failed statement does not spoil the next one") { database in
            for _ in 0..<40 {
                guard (try? await database.run(.read("SELECT nothing FROM notes"))) == nil else {
                    throw Violation("a column came from nowhere")
                }
            }
            try await expectNotes(0, in: database)
        },
        Rule("A text with a NUL, which a database would cut there or refuse, reaches no statement") { database in
            _ = try await database.run(insert("a"))
            let statements = [
                SQLStatement.read("SELECT id FROM notes WHERE id = \("a\0x")"),
                SQLStatement("UPDATE notes SET count = 1 WHERE id = \("a\0x")"), insert("a\0x"),
            ]
            for statement in statements {
                try await expectError(.statement) { try await database.run(statement) }
            }
            try await expectNotes(1, in: database)
        },
        Rule("Errors never show the values that were to be stored") { database in
            _ = try await database.run(insert("hunter2hunter2"))
            let error = try await expectError(.constraint) { try await database.run(insert("hunter2hunter2")) }
            try expect(!"\(error)".contains("hunter2"), "the error shows a value")
        },
    ]
}
