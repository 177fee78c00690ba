extension HTTPBody {
    /// Reads the content if it has at most `limit` bytes; it is then in memory. Of a longer one nothing is lost: the
    /// chunks that were read come first when it is read on.
    ///
    /// - Returns: the content; `nil` when it is longer.
    /// - Throws: what reading throws.
    package mutating func peek(upTo limit: Int) async throws -> [UInt8]? {
        if let inMemory { return inMemory.count <= limit ? inMemory : nil }
        if let length, length > limit { return nil }
        let isOfReply = isOfReply
        defer { self.isOfReply = isOfReply }
        let pull = reading()
        var chunks: [[UInt8]] = []
        var count = 0
        while let chunk = try await pull() {
            chunks.append(chunk)
            count += chunk.count
            guard count > limit else { continue }
            let read = Locked(chunks[...])
            self = HTTPBody(length: length, isReplayable: false) {
                {
                    if let chunk = read.withLock({ $0.popFirst() }) { return chunk }
                    return try await pull()
                }
            }
            return nil
        }
        let bytes = Array(chunks.joined())
        self = HTTPBody(bytes)
        return bytes
    }
}
