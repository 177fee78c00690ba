/// Places that are given out so that a few holders cannot take them all: one alone gets a quarter, and each further one
/// a quarter of what is left. So there is room for those who were never seen, also when ten take all that they get.
package struct Shares<Holder: Hashable & Sendable>: Sendable {
    /// How many places there are.
    package let total: Int

    /// How many places one holder may have, whatever is left; `nil` when only the share counts.
    package let perHolder: Int?

    /// How many places are taken.
    package private(set) var taken = 0

    private var held: [Holder: Int] = [:]

    /// How many places must be left for each one that a holder has.
    private static var reserve: Int { 3 }

    /// Free places.
    package init(total: Int, perHolder: Int? = nil) {
        self.total = total
        self.perHolder = perHolder
    }

    /// How many places a holder has.
    package func count(of holder: Holder) -> Int { held[holder, default: 0] }

    /// How many more places a holder gets if nobody else asks.
    package func left(for holder: Holder) -> Int {
        let (free, count) = (total - taken, count(of: holder))
        if let perHolder { return max(0, min(free, perHolder - count)) }
        // The largest n with reserve * (count + n - 1) < free - (n - 1).
        return max(0, (free - Self.reserve * count + Self.reserve) / (Self.reserve + 1))
    }

    /// Takes a place, unless the holder has its share.
    package mutating func enter(_ holder: Holder) -> Bool {
        guard left(for: holder) > 0 else { return false }
        taken += 1
        held[holder, default: 0] += 1
        return true
    }

    /// Gives a place back.
    package mutating func leave(_ holder: Holder) {
        taken -= 1
        let left = count(of: holder) - 1
        // The table only holds who is here.
        held[holder] = left > 0 ? left : nil
    }
}
