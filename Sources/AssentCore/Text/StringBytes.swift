extension String {
    /// Whether all bytes of the text satisfy a condition. They are looked at where they lie in memory: through the
    /// text's own view that takes several times as long, and what is asked here is asked of all texts of each call.
    func allBytes(satisfy condition: (UInt8) -> Bool) -> Bool {
        utf8.withContiguousStorageIfAvailable { $0.allSatisfy(condition) } ?? utf8.allSatisfy(condition)
    }
}
