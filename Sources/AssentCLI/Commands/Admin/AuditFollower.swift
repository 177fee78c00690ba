import AssentCore

/// Shows the audit log as it grows.
struct AuditFollower {
    /// Nodes write in parallel, each by its own clock: a record may be committed after one with a later position. What
    /// is that much older than the newest one is asked for again, in microseconds: the clocks of two nodes that are
    /// ready may differ by a minute, each by half of it from the database server's, and a commit may take another half.
    static let overlap: Int64 = 90_000_000

    /// As many as the server gives at once.
    static let page = 1000

    /// Gets the records of a path below `json`.
    let fetch: (String) async throws -> [JSONValue]

    /// Waits until the next look.
    let wait: () async throws -> Void

    /// This machine's time, in microseconds since 1970. Records of a node whose clock was once put far ahead stay in
    /// the future until that time has come: what the other nodes write meanwhile is new, and lies before them. Where
    /// this clock is behind, more is asked for again than is needed, and nothing is missed.
    let now: () -> Int64

    /// Shows one record.
    let show: (JSONValue) -> Void

    /// Which record it is.
    private struct Place: Hashable {
        let node: String
        let position: Int64

        init?(_ record: JSONValue) {
            guard let node = record["node"]?.string, let position = record["position"]?.integer else { return nil }
            (self.node, self.position) = (node, position)
        }
    }

    /// Shows the newest records, and then those that are written, each once, until the task is cancelled.
    ///
    /// - Parameters:
    ///   - limit: how many are shown that are there already.
    ///   - check: called after each look; what it throws ends this.
    /// - Throws: what `fetch`, `wait` and `check` throw.
    func run(newest limit: Int, check: () throws -> Void) async throws {
        var shown: Set<Place> = []
        var latest: Int64 = 0
        // More than are to be shown: what is older must not come with the next look.
        let known = try await fetch("audit?limit=\(Self.page)")
        for (index, record) in known.enumerated().reversed() {
            guard let place = Place(record) else { continue }
            shown.insert(place)
            latest = max(latest, place.position)
            if index < limit { show(record) }
        }
        // Where the list was cut, what lies before its end is old, unless all of it is in the future.
        var start: Int64 = 0
        if known.count >= Self.page, let end = known.last.flatMap(Place.init)?.position {
            let time = now()
            start = end > time ? time - Self.overlap : end
        }
        while true {
            try check()
            try await wait()
            start = max(start, min(latest, now()) - Self.overlap)
            var after = start
            var isMore: Bool
            repeat {
                let asked = after
                let records = try await fetch("audit?after=\(after)&limit=\(Self.page)")
                for record in records {
                    guard let place = Place(record) else { continue }
                    after = max(after, place.position)
                    if shown.insert(place).inserted { show(record) }
                }
                latest = max(latest, after)
                // A full page without a later record would come again, and at once.
                isMore = records.count == Self.page && after > asked
            } while isMore
            shown = shown.filter { $0.position >= start }
        }
    }
}
