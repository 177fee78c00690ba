/// The steps that this process is working on. A second answer to the same step waits for the outcome of the first.
actor StepsInFlight {
    private var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]

    /// How many may wait for one step.
    static let limit = 128

    /// Begins work on a step and returns `true`; or waits until the work of another request on it has ended and returns
    /// `false`.
    func enter(_ id: String) async throws -> Bool {
        guard let others = waiting[id] else {
            waiting[id] = []
            return true
        }
        guard others.count < Self.limit else { throw EngineError(.busy) }
        await withCheckedContinuation { waiting[id, default: []].append($0) }
        return false
    }

    /// Ends work on a step.
    func leave(_ id: String) {
        for continuation in waiting.removeValue(forKey: id) ?? [] { continuation.resume() }
    }
}
