import AssentStore

extension SQLDatabaseContract {
    static let parallelRules: [Rule] = [
        Rule("What was written is read at once, by as many as want to") { database in
            for round in 1...20 {
                _ = try await database.run(insert("\(round)"))
                try await withThrowingTaskGroup { group in
                    for _ in 0..<40 { group.addTask { try await count("notes", in: database) } }
                    for try await count in group { try expect(count == Int64(round), "\(count) in round \(round)") }
                }
            }
        },
        Rule("What one instance has written, another one reads at once") { database, open in
            let other = try await open()
            for round in 1...5 {
                _ = try await (round.isMultiple(of: 2) ? other : database).run(insert("\(round)"))
                try await expectNotes(Int64(round), in: round.isMultiple(of: 2) ? database : other)
            }
            try await other.close()
        },
        Rule("Increments in parallel are all counted") { database in
            _ = try await database.run(insert("a"))
            let seen = try await withThrowingTaskGroup(of: Int64.self) { group in
                for _ in 0..<300 {
                    group.addTask {
                        let sql: SQL = "UPDATE notes SET count = count + 1 WHERE id = 'a' RETURNING count"
                        let rows = try await database.run(SQLStatement(sql, expecting: .exactly(1)))
                        return try rows.first?.integer("count") ?? -1
                    }
                }
                return try await group.reduce(into: Set<Int64>()) { $0.insert($1) }
            }
            try expect(seen == Set(1...300), "\(seen.count) different counts")
        },
        Rule("Of many that spend one thing, one succeeds, over two instances") { first, open in
            _ = try await first.run(insert("a"))
            let second = try await open()
            let won = await withTaskGroup(of: Bool.self) { group in
                for index in 0..<100 {
                    group.addTask {
                        let spend = SQLStatement(
                            "UPDATE notes SET count = 1 WHERE id = 'a' AND count = 0", expecting: .exactly(1))
                        let database = index.isMultiple(of: 2) ? first : second
                        return (try? await database.run([insert("by-\(index)"), spend])) != nil
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            try expect(won == 1, "\(won) have spent it")
            try await expectNotes(2, in: first)
            try await second.close()
        },
        Rule("A reader never sees half of a transaction") { database in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<50 {
                    group.addTask { _ = try await database.run([insert("a-\(index)"), insert("b-\(index)")]) }
                    group.addTask {
                        let count = try await count("notes", in: database)
                        try expect(count.isMultiple(of: 2), "\(count) notes")
                    }
                }
                try await group.waitForAll()
            }
        },
    ]

    static let lifeRules: [Rule] = [
        Rule("What a cancelled task asks for is done as a whole or not at all, and others are served") { database in
            for round in 0..<20 {
                let before = try await count("notes", in: database)
                let task = Task {
                    try await database.run([insert("a-\(round)"), insert("b-\(round)")])
                }
                if round.isMultiple(of: 2) { await Task.yield() }
                task.cancel()
                let isDone: Bool
                switch await task.result {
                case .success: isDone = true
                case .failure(let error):
                    try expect(error is CancellationError, "the error was \(error)")
                    isDone = false
                }
                try await expectNotes(before + (isDone ? 2 : 0), in: database)
            }
        },
        Rule("An open database is healthy") { database in try await database.checkHealth() },
        Rule("A closed database is unavailable for whatever it is asked, and can be closed again") { database in
            _ = try await database.run(insert("a"))
            try await expectNotes(1, in: database)
            try await database.close()
            try await expectError(.unavailable) { try await database.run(.read("SELECT 1 AS one")) }
            try await expectError(.unavailable) { try await database.run(insert("b")) }
            try await expectError(.unavailable) { try await database.run([insert("b"), insert("c")]) }
            try await expectError(.unavailable) { try await database.checkHealth() }
            try await database.close()
        },
        Rule("What was acknowledged is there after the database was closed and opened again") { database, open in
            _ = try await database.run([insert("a"), insert("b")])
            try await database.close()
            let again = try await open()
            try await expectNotes(2, in: again)
            try await again.close()
        },
    ]
}
