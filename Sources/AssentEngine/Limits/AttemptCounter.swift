import AssentCore
import AssentStore

/// Counts attempts in the store, so that all nodes share one count: guesses at a second factor, creations of
/// transactions.
package struct AttemptCounter: Sendable {
    private let context: EngineContext

    /// The counters of a context's database.
    package init(_ context: EngineContext) {
        self.context = context
    }

    /// Counts one attempt in the current window and tells whether it is still within the limit.
    ///
    /// The count is one atomic statement: parallel attempts never share a number. `counter` says what is counted, for
    /// example `totp:<user id>`; at most `limit` are allowed in a window of `window` seconds.
    package func attempt(_ counter: String, limit: Int64, window: Int64) async throws -> Bool {
        let rows = try await context.database.run(
            SQLStatement(counting(counter, from: start(of: window)), expecting: .exactly(1)))
        return try isWithin(limit, rows)
    }

    /// Counts one call whose limit only bounds the server's work, and waits for neither the disk nor a standby: after a
    /// crash of the database the last of them may be missing. A node that has the database for itself counts in memory.
    /// Guesses are never counted so.
    package func call(_ counter: String, limit: Int64, window: Int64) async throws -> Bool {
        let start = start(of: window)
        guard context.database.isShared else {
            return context.calls.add(counter, from: start, to: start + window) <= limit
        }
        return try isWithin(limit, try await context.database.run(.unlogged(counting(counter, from: start))))
    }

    private func start(of window: Int64) -> Int64 {
        let now = context.clock.epochSeconds
        return now - now % max(window, 1)
    }

    private func counting(_ counter: String, from start: Int64) -> SQL {
        """
        INSERT INTO attempts (counter, window_start, count) VALUES (\(counter), \(start), 1)
        ON CONFLICT (counter, window_start) DO UPDATE SET count = attempts.count + 1 RETURNING count
        """
    }

    private func isWithin(_ limit: Int64, _ rows: [SQLRow]) throws -> Bool {
        try (rows.first?.integer("count") ?? .max) <= limit
    }

    /// Forgets the attempts of a counter, after a success.
    package func reset(_ counter: String) async throws {
        _ = try await context.database.run(SQLStatement("DELETE FROM attempts WHERE counter = \(counter)"))
    }

    /// The statements that forget a user's wrong passwords and codes.
    static func forgetting(_ user: User) -> [SQLStatement] {
        let password = PasswordCaller(
            address: nil, user: PasswordCaller.hash(username: user.username, realm: user.realm))
        let codes = OneTimePasswords.counter(userID: user.id)
        let deviceCodes = SigningCodes.counter(userID: user.id)
        // Its characters are ASCII; those of the addresses stand behind it.
        let ofAnyAddress = password.counterHere
        return [
            SQLStatement(
                """
                DELETE FROM attempts
                WHERE counter = \(codes) OR counter = \(deviceCodes) OR counter = \(password.counter)
                    OR substr(counter, 1, CAST(\(ofAnyAddress.utf8.count) AS INTEGER)) = \(ofAnyAddress)
                """)
        ]
    }

    /// Deletes the windows that began before `time` (seconds since 1970).
    package func purge(before time: Int64) async throws {
        context.calls.purge(before: time)
        _ = try await context.delete(
            from: "attempts", key: "counter, window_start", where: "window_start < \(time)")
    }
}
