/// How much a QR code of a version holds at error correction level L (ISO/IEC 18004, tables 1, 7 and 9).
struct QRCapacity: Sendable {
    private static let checkBytesPerBlock = [
        7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28,
    ]
    private static let blockCounts = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8]

    /// All bytes, those for error correction included.
    let total: Int

    /// Into how many blocks they are divided.
    let blocks: Int

    /// How many bytes of each block are for error correction.
    let checkBytes: Int

    /// How many bits the length has.
    let lengthBits: Int

    /// The capacity of a version from 1 to 20.
    init(_ version: Int) {
        var modules = (16 * version + 128) * version + 64
        if version >= 2 {
            let centres = version / 7 + 2
            modules -= (25 * centres - 10) * centres - 55
        }
        if version >= 7 { modules -= 36 }
        total = modules / 8
        blocks = Self.blockCounts[version - 1]
        checkBytes = Self.checkBytesPerBlock[version - 1]
        lengthBits = version < 10 ? 8 : 16
    }

    /// How many bytes hold data.
    var data: Int { total - blocks * checkBytes }

    /// Whether so many bytes of content have room.
    func holds(_ count: Int) -> Bool { 4 + lengthBits + 8 * count <= 8 * data }
}

/// The bytes of a QR code: content, padding, and what corrects errors.
struct QRCodewords: Sendable {
    private let blocks: [[UInt8]]
    private let checks: [[UInt8]]

    /// The bytes for content that has room.
    init(_ content: [UInt8], _ capacity: QRCapacity) {
        var bits = [Bool]()
        let append = { (bits: inout [Bool], value: Int, count: Int) in
            bits += (0..<count).map { value >> (count - 1 - $0) & 1 == 1 }
        }
        append(&bits, 0b0100, 4)
        append(&bits, content.count, capacity.lengthBits)
        for byte in content { append(&bits, Int(byte), 8) }
        append(&bits, 0, min(4, 8 * capacity.data - bits.count))
        append(&bits, 0, (8 - bits.count % 8) % 8)
        var padding = 0xEC
        while bits.count < 8 * capacity.data {
            append(&bits, padding, 8)
            padding ^= 0xEC ^ 0x11
        }
        var bytes = stride(from: 0, to: bits.count, by: 8).map { start in
            bits[start..<start + 8].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
        }[...]
        let short = capacity.data / capacity.blocks
        let shortBlocks = capacity.blocks - capacity.data % capacity.blocks
        blocks = (0..<capacity.blocks).map { index in
            let count = index < shortBlocks ? short : short + 1
            defer { bytes = bytes.dropFirst(count) }
            return Array(bytes.prefix(count))
        }
        let code = ReedSolomon(count: capacity.checkBytes)
        checks = blocks.map(code.remainder(of:))
    }

    /// The bytes in the order in which they are drawn: of each block the first, then of each the second, and so on.
    var interleaved: [UInt8] { Self.interleave(blocks) + Self.interleave(checks) }

    private static func interleave(_ blocks: [[UInt8]]) -> [UInt8] {
        (0..<(blocks.map(\.count).max() ?? 0)).flatMap { index in
            blocks.compactMap { index < $0.count ? $0[index] : nil }
        }
    }
}

/// The error correction of QR codes: Reed–Solomon over GF(2⁸) with the polynomial 0x11D.
private struct ReedSolomon {
    private let divisor: [UInt8]

    init(count: Int) {
        var divisor = [UInt8](repeating: 0, count: count)
        divisor[count - 1] = 1
        var root: UInt8 = 1
        for _ in 0..<count {
            for index in divisor.indices {
                divisor[index] = Self.product(divisor[index], root)
                if index + 1 < count { divisor[index] ^= divisor[index + 1] }
            }
            root = Self.product(root, 2)
        }
        self.divisor = divisor
    }

    func remainder(of data: [UInt8]) -> [UInt8] {
        var remainder = [UInt8](repeating: 0, count: divisor.count)
        for byte in data {
            let factor = byte ^ remainder.removeFirst()
            remainder.append(0)
            for index in divisor.indices { remainder[index] ^= Self.product(divisor[index], factor) }
        }
        return remainder
    }

    private static func product(_ left: UInt8, _ right: UInt8) -> UInt8 {
        var product = 0
        for bit in (0..<8).reversed() {
            product = product << 1 ^ (product >> 7) * 0x11D
            product ^= Int(right >> bit & 1) * Int(left)
        }
        return UInt8(truncatingIfNeeded: product)
    }
}
