import AssentStore

/// Why a node is not ready. `/readyz` is for anyone, so it tells nobody's name.
enum NotReady: String, Sendable, CaseIterable {
    case nodeIDTaken
    case clock
    case standbySilent
    case standbyNotNamed
    case serversDiffer
    case serverRefused
    case noServer
    /// Something else is wrong with the database.
    case database

    /// Why the database does not serve.
    init(_ error: any Error) {
        self =
            switch (error as? StoreError)?.obstacle {
            case .standbySilent: .standbySilent
            case .standbyNotNamed: .standbyNotNamed
            case .serversDiffer: .serversDiffer
            case .serverRefused: .serverRefused
            case .noServer: .noServer
            case nil: .database
            }
    }

    /// For a reader.
    var text: String {
        switch self {
        case .nodeIDTaken: "another server has this node's id"
        case .clock: "the clock differs from the database server's"
        case .standbySilent: "a standby does not confirm what is committed, and nothing is written"
        case .standbyNotNamed: "a standby is required, and the database server names none"
        case .serversDiffer: "several database servers accept writes, and none has everything"
        case .serverRefused: "the database server lacks what this node has seen, or what another server has"
        case .noServer: "no database server can be reached that accepts writes"
        case .database: "the database does not answer"
        }
    }
}
