/// How long a content is made, so that its length tells little (docs/payload-encryption.md, "Content").
package enum Padding {
    /// The length that `count` bytes are padded to: 256, then powers of two to 65,536, then Padmé.
    package static func length(of count: Int) -> Int {
        guard count > 256 else { return 256 }
        let exponent = Int.bitWidth - 1 - count.leadingZeroBitCount
        guard count > 65_536 else { return count == 1 << exponent ? count : 1 << (exponent + 1) }
        let bits = Int.bitWidth - exponent.leadingZeroBitCount
        let mask = 1 << (exponent - bits) - 1
        let (sum, overflow) = count.addingReportingOverflow(mask)
        return overflow ? count : sum & ~mask
    }

    /// Adds the zero bytes behind a content.
    package static func pad(_ content: inout [UInt8]) {
        // From an array, which is filled and copied as one block: what repeats an element is added one by one.
        content += bytes(behind: content.count)
    }

    /// The zero bytes behind `count`.
    package static func bytes(behind count: Int) -> [UInt8] {
        [UInt8](repeating: 0, count: length(of: count) - count)
    }

    /// The most padding that is read behind `count` bytes: others may pad more than we do, but not without end.
    static func limit(behind count: Int) -> Int { 65_536 + count / 8 }
}
