import AssentCore
import AssentTesting
import Testing

/// Deterministic damage: every truncation, every single-byte change from a set of nasty bytes, and random edits.
enum Mutations {
    private static let nasty: [UInt8] =
        Array("\"\\,;=<>&%/:@[]{}()#?+ \t\r\n\u{0}\u{1B}\u{7F}azAZ09.-_".utf8) + [0x80, 0xC3, 0xFF]

    /// Calls `body` with `count` random edits of `seeds`, and with all their truncations. Bytes that are not UTF-8
    /// become replacement characters.
    static func of(_ seeds: [String], count: Int, seed: UInt64 = 1, _ body: (String) throws -> Void) rethrows {
        try ofBytes(seeds.map { Array($0.utf8) }, count: count, seed: seed) {
            try body(String(decoding: $0, as: UTF8.self))
        }
    }

    static func ofBytes(
        _ seeds: [[UInt8]], count: Int, seed: UInt64 = 1, _ body: ([UInt8]) throws -> Void
    ) rethrows {
        for bytes in seeds {
            for end in 0...bytes.count { try body(Array(bytes[..<end])) }
        }
        let random = SeededRandom(seed: seed)
        func below(_ limit: Int) -> Int {
            let bytes = random.bytes(4)
            let value = bytes.reduce(0) { $0 << 8 | Int($1) }
            return value % max(limit, 1)
        }
        for _ in 0..<count {
            var bytes = seeds[below(seeds.count)]
            for _ in 0...below(4) {
                let at = below(bytes.count + 1)
                switch below(5) {
                case 0: bytes.insert(nasty[below(nasty.count)], at: at)
                case 1: if at < bytes.count { bytes.remove(at: at) }
                case 2: if at < bytes.count { bytes[at] = nasty[below(nasty.count)] }
                case 3: if at < bytes.count { bytes[at] ^= 1 << UInt8(below(8)) }
                default:
                    let other = seeds[below(seeds.count)]
                    let from = below(other.count)
                    bytes.insert(contentsOf: other[from..<min(other.count, from + below(20))], at: at)
                }
            }
            try body(bytes)
        }
    }
}
