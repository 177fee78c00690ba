import AssentCore

/// What apps have said of their probes, counted: who looks for a wave of it does not read one record after the other.
struct ReportSummary {
    /// What is counted together.
    struct Kind: Hashable {
        let realm: String
        let app: String
        let version: String
        let platform: String
        let probe: String
        let calls: String
        /// Whether an installation has proved its key beside it. Anybody can say the rest.
        let isProved: Bool
    }

    struct Count: Hashable {
        var reports = 0
        /// The client ids of those who have proved it.
        var installations: Set<String> = []
        /// When the last one came, as the server writes it.
        var last = ""
    }

    private(set) var counts: [Kind: Count] = [:]

    /// The one app that is counted; `nil` for all.
    let app: String?

    init(app: String? = nil) { self.app = app }

    /// Counts a record of the audit log, and ignores records of other events.
    mutating func add(_ record: JSONValue) {
        guard record["event"]?.string == "integrity.report", let detail = record["detail"],
            let app = detail["app"]?.string, self.app.map({ $0 == app }) ?? true
        else { return }
        let client = detail["client"]?.string
        for finding in detail["findings"]?.array ?? [] {
            guard let probe = finding["probe"]?.string, let calls = finding["calls"]?.string else { continue }
            let kind = Kind(
                realm: record["realm"]?.string ?? "", app: app, version: detail["version"]?.string ?? "",
                platform: detail["platform"]?.string ?? "", probe: probe, calls: calls, isProved: client != nil)
            var count = counts[kind, default: Count()]
            count.reports += 1
            if let client { count.installations.insert(client) }
            count.last = max(count.last, record["at"]?.string ?? "")
            counts[kind] = count
        }
    }

    /// Those that are proved before the others, the most frequent first.
    var rows: [(kind: Kind, count: Count)] {
        counts.map { (kind: $0.key, count: $0.value) }.sorted { left, right in
            if left.kind.isProved != right.kind.isProved { return left.kind.isProved }
            if left.count.reports != right.count.reports { return left.count.reports > right.count.reports }
            return Self.order(left.kind).lexicographicallyPrecedes(Self.order(right.kind))
        }
    }

    private static func order(_ kind: Kind) -> [String] {
        [kind.realm, kind.app, kind.version, kind.platform, kind.probe, kind.calls]
    }

    /// A row for a script.
    static func json(_ kind: Kind, _ count: Count) -> JSONValue {
        [
            "realm": .string(kind.realm), "app": .string(kind.app), "version": .string(kind.version),
            "platform": .string(kind.platform), "probe": .string(kind.probe), "calls": .string(kind.calls),
            "proved": .bool(kind.isProved), "reports": .integer(count.reports),
            "installations": .integer(count.installations.count), "last": .string(count.last),
        ]
    }

    /// A row for a person.
    static func line(_ kind: Kind, _ count: Count) -> String {
        let who =
            kind.isProved
            ? "\(count.installations.count) installation\(count.installations.count == 1 ? "" : "s")" : "not proved"
        let app = [kind.app, kind.version, kind.platform].map(DisplayText.escapedForTerminal).joined(separator: " ")
        let found = DisplayText.escapedForTerminal(kind.probe) + ", calls " + DisplayText.escapedForTerminal(kind.calls)
        return "\(kind.realm)  \(app)  \(found): \(count.reports) reports, \(who), last \(count.last)"
    }
}
