/// SplitMix64: the same walk in every run, and quick enough for a million steps.
package struct SmallRandom: RandomNumberGenerator {
    private var state: UInt64

    /// The walk of this number.
    package init(seed: Int) {
        state = UInt64(truncatingIfNeeded: seed) &* 0xD1B5_4A32_D192_ED03
        // Otherwise neighbouring seeds would give neighbouring walks.
        state = next()
    }

    /// The next number.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound - 1`; 0 when there is none.
    package mutating func below(_ bound: Int) -> Int {
        bound > 0 ? Int(truncatingIfNeeded: next() >> 33) % bound : 0
    }

    /// One of them; `nil` when there is none.
    package mutating func pick<Element>(_ elements: [Element]) -> Element? {
        elements.isEmpty ? nil : elements[below(elements.count)]
    }
}
