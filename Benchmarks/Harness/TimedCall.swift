/// One way of calling, with what its calls have taken.
struct TimedCall {
    private let send: @Sendable () async throws -> (status: Int, body: [UInt8])
    private var durations: [Double] = []
    private var processor = 0.0

    init(_ send: @escaping @Sendable () async throws -> (status: Int, body: [UInt8])) { self.send = send }

    /// The median of the calls, in seconds.
    var latency: Double { Figure.median(durations) }

    /// Seconds of the processor for one call, with the event loop's.
    var processorTime: Double { processor / Double(durations.count) }

    mutating func call(_ count: Int, expecting body: String) async throws {
        let clock = ContinuousClock()
        let expected = Array(body.utf8)
        let before = ProcessTime.now
        for _ in 0..<count {
            let start = clock.now
            let reply = try await send()
            durations.append((clock.now - start).inSeconds)
            guard reply.status == 200, reply.body == expected else { throw BenchFailure("an unexpected reply") }
        }
        processor += ProcessTime.now - before
    }
}
