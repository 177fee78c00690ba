/// The part of a reply that has come and was not read yet, and whether the connection must pause because of its size.
struct ReplyBacklog {
    private var chunks: [[UInt8]] = []
    private var count = 0
    private var isHeld = false

    static let highWater = 256 << 10
    static let lowWater = 64 << 10
    private static let coalesced = 16 << 10

    /// Keeps bytes; whether the connection should pause. A peer may send single bytes; they are not kept one by one.
    mutating func add(_ bytes: [UInt8]) -> Bool {
        if let last = chunks.indices.last, chunks[last].count + bytes.count <= Self.coalesced {
            chunks[last] += bytes
        } else {
            chunks.append(bytes)
        }
        count += bytes.count
        // After a pause it continues only when asked, whatever else arrives before.
        if count >= Self.highWater { isHeld = true }
        return isHeld
    }

    /// The next bytes, and whether the connection, which has paused, should go on; `nil` when there are none.
    mutating func take() -> (bytes: [UInt8], resumes: Bool)? {
        guard !chunks.isEmpty else { return nil }
        let chunk = chunks.removeFirst()
        count -= chunk.count
        let resumes = isHeld && count <= Self.lowWater
        if resumes { isHeld = false }
        return (chunk, resumes)
    }
}
