/// Which numbers of a session a node has seen: the newest, and the 1,024 up to it.
package struct NumberWindow: Sendable {
    package static let size: UInt64 = 1024
    private static let wordBits: UInt64 = 64

    private var newest: UInt64 = 0
    /// One bit for each number, at its remainder. It grows as far as numbers have come: a node has very many sessions,
    /// most of them with few messages.
    private var seen: [UInt64] = []

    package init() {}

    /// Takes `number`, once: whether it is new. What is too old to be known counts as seen.
    package mutating func claim(_ number: UInt64) -> Bool {
        guard number > 0, number > newest || newest - number < Self.size else { return false }
        if number > newest {
            if number - newest >= Self.size {
                seen = []
            } else {
                for passed in newest + 1...number { set(passed, false) }
            }
            newest = number
        }
        guard !isSet(number) else { return false }
        set(number, true)
        return true
    }

    private func place(_ number: UInt64) -> (word: Int, mask: UInt64) {
        let bit = number % Self.size
        return (Int(bit / Self.wordBits), 1 << (bit % Self.wordBits))
    }

    private func isSet(_ number: UInt64) -> Bool {
        let (word, mask) = place(number)
        return word < seen.count && seen[word] & mask != 0
    }

    private mutating func set(_ number: UInt64, _ isSeen: Bool) {
        let (word, mask) = place(number)
        guard isSeen else {
            if word < seen.count { seen[word] &= ~mask }
            return
        }
        while seen.count <= word { seen.append(0) }
        seen[word] |= mask
    }
}
