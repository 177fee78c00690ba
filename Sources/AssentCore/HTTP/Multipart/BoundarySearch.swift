/// Looks for a boundary in content, by its last byte first (Horspool): most bytes are never looked at.
struct BoundarySearch: Sendable {
    let boundary: [UInt8]
    private let steps: [Int]

    /// A search for `boundary`, which must not be empty.
    init(_ boundary: [UInt8]) {
        self.boundary = boundary
        var steps = [Int](repeating: boundary.count, count: 256)
        for (index, byte) in boundary.dropLast().enumerated() { steps[Int(byte)] = boundary.count - 1 - index }
        self.steps = steps
    }

    /// Whether it stands in `content`.
    func finds(in content: [UInt8]) -> Bool {
        var end = boundary.count - 1
        while end < content.count {
            if content[end] == boundary[boundary.count - 1], stands(in: content, endingAt: end) { return true }
            end += steps[Int(content[end])]
        }
        return false
    }

    private func stands(in content: [UInt8], endingAt end: Int) -> Bool {
        var back = 1
        while back < boundary.count {
            guard content[end - back] == boundary[boundary.count - 1 - back] else { return false }
            back += 1
        }
        return true
    }

    /// Whether it stands in content that comes in chunks, also where two of them meet.
    ///
    /// - Parameters:
    ///   - chunk: the next bytes.
    ///   - tail: the last bytes before; they are brought up to date.
    /// - Returns: whether it was found.
    func finds(in chunk: [UInt8], after tail: inout [UInt8]) -> Bool {
        let overlap = boundary.count - 1
        if !tail.isEmpty, finds(in: tail + chunk.prefix(overlap)) { return true }
        tail = chunk.count >= overlap ? Array(chunk.suffix(overlap)) : Array((tail + chunk).suffix(overlap))
        return finds(in: chunk)
    }
}
