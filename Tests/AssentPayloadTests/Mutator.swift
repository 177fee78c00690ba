import TestSupport

/// Changes bytes in the ways of somebody who wants a reader to go wrong. The same seed makes the same changes.
struct Mutator {
    private var random: SmallRandom
    /// Where something begins in what is changed: changed more often than the rest.
    private let places: [Int]
    /// Another message, from which a part can come.
    private let other: [UInt8]

    /// Lengths of frames and of Binary HTTP at the ends of their ranges, too long, and longer written than need be.
    private static let lengths: [[UInt8]] = [
        [0], [1], [15], [0x3F], [0x40, 0], [0x40, 1], [0x7F, 0xFF], [0x80, 0, 0, 1], [0x80, 1, 0, 0], [0x80, 1, 0, 1],
        [0xBF, 0xFF, 0xFF, 0xFF], [0xC0, 0, 0, 0, 0, 0, 0, 1], [UInt8](repeating: 0xFF, count: 8), [0, 0, 0, 15],
        [0, 0, 0, 16], [0, 1, 0, 16], [0, 1, 0, 17], [0xFF, 0xFF, 0xFF, 0xFF],
    ]

    init(seed: Int, places: [Int], other: [UInt8]) {
        random = SmallRandom(seed: seed)
        (self.places, self.other) = (places, other)
    }

    mutating func below(_ bound: Int) -> Int { random.below(bound) }

    /// One to three changes.
    mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0...random.below(3) where !bytes.isEmpty { change(&bytes) }
        return bytes
    }

    private mutating func change(_ bytes: inout [UInt8]) {
        let index = index(in: bytes)
        switch random.below(9) {
        case 0: bytes[index] ^= 1 << random.below(8)
        case 1: bytes[index] = UInt8(random.below(256))
        case 2: bytes.removeSubrange(index..<min(bytes.count, index + 1 + random.below(40)))
        case 3: bytes.removeSubrange(index...)
        case 4: bytes.insert(contentsOf: length, at: index)
        case 5: Self.overwrite(&bytes, at: index, with: length)
        case 6:
            let section = Array(bytes[index..<min(bytes.count, index + 1 + random.below(400))])
            bytes.insert(contentsOf: section, at: self.index(in: bytes))
        case 7:
            let from = self.index(in: bytes)
            let count = min(1 + random.below(400), bytes.count - max(index, from))
            for offset in 0..<count { bytes.swapAt(index + offset, from + offset) }
        default:
            let from = random.below(2) == 0 ? index : self.index(in: other)
            bytes = Array(bytes.prefix(index)) + Array(other.dropFirst(from))
        }
    }

    private static func overwrite(_ bytes: inout [UInt8], at index: Int, with value: [UInt8]) {
        for (offset, byte) in value.enumerated() where index + offset < bytes.count { bytes[index + offset] = byte }
    }

    private var length: [UInt8] {
        mutating get { random.pick(Self.lengths) ?? [] }
    }

    private mutating func index(in bytes: [UInt8]) -> Int {
        guard random.below(2) == 0, let place = random.pick(places) else { return random.below(bytes.count) }
        return min(max(0, place + random.below(6)), max(0, bytes.count - 1))
    }
}
