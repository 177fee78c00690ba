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
        // Where the list was cut, what lies before its end is old.
        let start = known.count < Self.page ? 0 : (known.last.flatMap(Place.init)?.position ?? 0)
        while true {
            try check()
            try await wait()
            var after = max(start, latest - Self.overlap)
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
            shown = shown.filter { $0.position >= latest - Self.overlap }
        }
    }
}
