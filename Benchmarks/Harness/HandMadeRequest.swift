import AssentStore

/// A request as it is served by hand: rows are looked up, something is calculated, and rows are written in one
/// transaction.
protocol HandMadeRequest: Sendable {
    /// What it looks up first; each finds one row.
    var reads: [SQL] { get }

    /// What it writes; each writes one row.
    var rows: [SQL] { get }

    /// What it verifies, evaluates and signs, between the two.
    func calculate() throws
}

extension HandMadeRequest {
    var reads: [SQL] { [] }
}

/// Requests by hand on one database, with the server's durability.
protocol HandMadeRows: Sendable {
    /// Serves requests, `parallel` at a time as far as the database can.
    func run(_ requests: [any HandMadeRequest], parallel: Int) async throws
}
