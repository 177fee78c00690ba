/// The checks of each user name that are in progress here.
///
/// Attempts are counted before the password is looked at, so that parallel guesses never get more than the limit. What
/// is in progress is then in the count, and may turn out to be right: nobody is told that a name is locked before that
/// is known.
actor ChecksInProgress {
    private struct Name {
        /// Those that try or check.
        var active = 0
        /// Those that wait for one of the active to end.
        var waiting: [CheckedContinuation<Bool, Never>] = []
        /// How many have ended since the name is here.
        var ended = 0
    }

    private var names: [String: Name] = [:]

    /// Does one check of the password of `name` and returns what `check` has found; `nil` when there were too many
    /// attempts that were not right. `mayTry` counts an attempt and tells whether it is within the limit.
    nonisolated func attempt<Found>(
        for name: String, mayTry: () async throws -> Bool, check: () async throws -> sending Found
    ) async throws -> sending Found? {
        await begin(name)
        do {
            while true {
                let seen = await ended(name)
                if try await mayTry() {
                    let found = try await check()
                    await end(name)
                    return found
                }
                guard await waitForEnd(name, since: seen) else { return nil }
            }
        } catch {
            await end(name)
            throw error
        }
    }

    private func begin(_ name: String) { names[name, default: Name()].active += 1 }

    private func ended(_ name: String) -> Int { names[name]?.ended ?? 0 }

    private func end(_ name: String) {
        guard var entry = names[name] else { return }
        entry.active += entry.waiting.count - 1
        entry.ended += 1
        let woken = entry.waiting
        entry.waiting = []
        names[name] = entry.active > 0 ? entry : nil
        for waiter in woken { waiter.resume(returning: true) }
    }

    /// Whether another attempt is worth while: since `seen`, or in a moment, a check of the name has ended. Otherwise
    /// the caller is in progress no more.
    private func waitForEnd(_ name: String, since seen: Int) async -> Bool {
        guard var entry = names[name] else { return false }
        if entry.ended != seen { return true }
        entry.active -= 1
        guard entry.active > 0 else {
            // All others wait for one to end, too, and there is none.
            names[name] = nil
            for waiter in entry.waiting { waiter.resume(returning: false) }
            return false
        }
        return await withCheckedContinuation { continuation in
            entry.waiting.append(continuation)
            names[name] = entry
        }
    }
}
