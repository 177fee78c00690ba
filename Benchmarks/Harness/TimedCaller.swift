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
