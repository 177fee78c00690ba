/// What this process is working on, by names. A second request for the same work waits for the outcome of the first.
actor WorkInFlight {
    private var others: [String: [CheckedContinuation<Void, Never>]] = [:]

    /// How many may wait for one piece of work.
    static let limit = 128

    /// How many wait.
    var waiting: Int { others.values.reduce(0) { $0 + $1.count } }

    /// Begins a piece of work and returns `true`; or waits until the work of another request on it has ended and
    /// returns `false`.
    func enter(_ name: String) async throws -> Bool {
        guard let waiting = others[name] else {
            others[name] = []
            return true
        }
        guard waiting.count < Self.limit else { throw EngineError(.busy) }
        await withCheckedContinuation { others[name, default: []].append($0) }
        return false
    }

    /// Ends a piece of work.
    func leave(_ name: String) {
        for continuation in others.removeValue(forKey: name) ?? [] { continuation.resume() }
    }
}
