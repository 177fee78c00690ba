/// One thing that is measured.
///
/// To add one: a type in a file of its own that conforms to this, and its line in ``Benchmarks/all``.
protocol Benchmark: Sendable {
    /// The word for `--only`.
    static var name: String { get }

    /// What is compared with what, in one line, for `--list`.
    static var summary: String { get }

    init(_ setting: BenchSetting)

    /// Measures. Subject and baseline take turns in each round; rounds are reported as they end
    /// (``Comparison/add(subject:baseline:of:)``).
    @concurrent func run() async throws -> [Comparison]
}

/// Where and how thoroughly to measure.
struct BenchSetting: Sendable {
    /// Where files go; on a real disk.
    let workspace: Workspace

    /// Whether a few rounds are enough to see that it works.
    let isQuick: Bool

    /// An earlier build of this program, to be compared with this one; `nil` for none.
    var before: String?

    /// `full`, or when it is only tried out, `quick`.
    func rounds(_ full: Int, quick: Int) -> Int { isQuick ? quick : full }
}

/// All that can be measured, in the order in which it is.
enum Benchmarks {
    /// One of them, before it runs.
    struct Entry {
        let name: String
        let summary: String
        let make: (BenchSetting) -> any Benchmark

        init<Kind: Benchmark>(_ kind: Kind.Type) {
            name = Kind.name
            summary = Kind.summary
            make = { Kind($0) }
        }
    }

    static var all: [Entry] {
        var all = [
            Entry(CallBenchmark.self), Entry(TakeBenchmark.self), Entry(GatewayBenchmark.self),
            Entry(TokenReadBenchmark.self), Entry(TokenRefreshBenchmark.self), Entry(TokenEndpointBenchmark.self),
            Entry(GuessingBenchmark.self), Entry(VaultBenchmark.self), Entry(DecideBenchmark.self),
            Entry(FetchToDecideBenchmark.self), Entry(BoundCallBenchmark.self), Entry(ProofBenchmark.self),
            Entry(KeyedTokenBenchmark.self), Entry(PINLoginBenchmark.self), Entry(MultipartBenchmark.self),
            Entry(ResourceCallBenchmark.self), Entry(TransferBenchmark.self), Entry(SealedFrameBenchmark.self),
            Entry(GuardedCallBenchmark.self), Entry(SealedCallBenchmark.self), Entry(SealedTransferBenchmark.self),
            Entry(PayloadSessionBenchmark.self),
            Entry(ApprovalBenchmark.self), Entry(WebSocketBenchmark.self), Entry(RemoteDecisionBenchmark.self),
        ]
        #if PostgreSQL && os(Linux)
        all.insert(contentsOf: [Entry(PostgreSQLTakeBenchmark.self), Entry(NodesBenchmark.self)], at: 2)
        all.append(Entry(HandshakeBenchmark.self))
        #endif
        return all
    }
}
