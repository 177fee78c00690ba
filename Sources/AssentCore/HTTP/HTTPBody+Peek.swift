extension HTTPBody {
    /// Reads everything if it is short, so that it can be read once more. A longer body begins with what was read for
    /// this, and goes on as it comes.
    ///
    /// - Parameter limit: how many bytes are short.
    /// - Returns: the content; `nil` when it is longer.
    /// - Throws: what reading throws.
    package mutating func peek(upTo limit: Int) async throws -> [UInt8]? {
        if let length, length > limit { return nil }
        if let inMemory { return inMemory }
        let next = reading()
        var read: [[UInt8]] = []
        var count = 0
        while let chunk = try await next() {
            read.append(chunk)
            count += chunk.count
            if count > limit {
                self = HTTPBody(length: length, beginningWith: read, then: next)
                return nil
            }
        }
        let bytes = Array(read.joined())
        self = HTTPBody(bytes)
        return bytes
    }

    private init(
        length: Int?, beginningWith read: [[UInt8]], then next: @escaping @Sendable () async throws -> [UInt8]?
    ) {
        let left = Locked(read[...])
        self.init(length: length, isReplayable: false) {
            return {
                if let chunk = left.withLock({ $0.popFirst() }) { return chunk }
                return try await next()
            }
        }
    }
}
