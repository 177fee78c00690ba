import AssentCore

/// One way of calling, with what its calls have taken.
struct TimedCaller {
    private let send: @Sendable () async throws -> (status: Int, body: [UInt8])
    private let spent: () throws -> Double
    private var durations: [Double] = []
    private var processor = 0.0

    /// - Parameters:
    ///   - spent: seconds that processors have worked so far: this process's, or those of a server as well.
    ///   - send: makes a call.
    init(
        spent: @escaping () throws -> Double = { ProcessTime.now },
        _ send: @escaping @Sendable () async throws -> (status: Int, body: [UInt8])
    ) {
        (self.spent, self.send) = (spent, send)
    }

    /// The median of the calls, in seconds.
    var latency: Double { Figure.median(durations) }

    /// Seconds of the processor for one call, with the event loop's.
    var processorTime: Double { processor / Double(durations.count) }

    mutating func call(_ count: Int, expecting body: String) async throws {
        let clock = ContinuousClock()
        let expected = Array(body.utf8)
        let before = try spent()
        for _ in 0..<count {
            let start = clock.now
            let reply = try await send()
            durations.append((clock.now - start).inSeconds)
            guard reply.status == 200, reply.body == expected else { throw BenchFailure("an unexpected reply") }
        }
        processor += try spent() - before
    }
}

extension TimedCaller {
    /// Sends one call again and again over a transport.
    init(
        _ call: HTTPCall, over transport: any HTTPTransport, spent: @escaping () throws -> Double = { ProcessTime.now }
    ) {
        self.init(spent: spent) { try await Self.whole(transport.send(call)) }
    }

    /// A reply with its body.
    static func whole(_ reply: HTTPReply) async throws -> (status: Int, body: [UInt8]) {
        (reply.status, try await reply.body.collect(upTo: 1 << 20))
    }

    /// Measures ways of calling beside each other: in each round they take turns with blocks of calls, and each is as
    /// often before one of the others as behind it. The first round warms all up.
    ///
    /// - Parameters:
    ///   - turns: how often each way calls.
    ///   - body: what each call is answered.
    ///   - ways: makes the callers of a round.
    ///   - count: what a round has measured.
    /// - Throws: what a call throws; ``BenchFailure`` for another answer.
    static func inTurns(
        _ turns: CallTurns, expecting body: String, _ ways: () -> [TimedCaller],
        count: ([TimedCaller]) -> Void
    ) async throws {
        for round in 0...turns.rounds {
            var callers = ways()
            for index in 0..<turns.blocks {
                let order = index.isMultiple(of: 2) ? Array(callers.indices) : callers.indices.reversed()
                for caller in order { try await callers[caller].call(turns.block, expecting: body) }
            }
            if round > 0 { count(callers) }
        }
    }
}

/// How often ways of calling that are measured beside each other call.
struct CallTurns {
    /// Rounds that are counted.
    let rounds: Int
    /// Blocks of each way in a round.
    let blocks: Int
    /// Calls in a block.
    var block = 25
}

extension BenchSetting {
    /// The turns of ways whose calls take much the same time.
    var callTurns: CallTurns { CallTurns(rounds: rounds(15, quick: 3), blocks: rounds(40, quick: 8)) }
}

/// What services answer in benchmarks of small calls.
enum AccountsReply {
    static let path = "/accounts"
    static let body = #"{"accounts":[{"id":"ES91","owner":"ana","balance":"1250.00","currency":"EUR"}]}"#

    /// The line of an nginx server that answers so.
    static let location = "location / { return 200 '\(body)'; }"
}
