/// A QR code (ISO/IEC 18004) of some bytes, for a camera that looks at the terminal: error correction level L, versions
/// 1 to 20.
struct QRCode: Sendable {
    /// How many modules a side has.
    private(set) var size: Int

    /// The modules, row by row; `true` is dark.
    private(set) var modules: [Bool]

    /// The modules that hold no data and that no mask changes.
    private var isFixed: [Bool]

    /// A code that says `text`; `nil` for one that is too long (858 bytes).
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let version = (1...20).first(where: { QRCapacity($0).holds(bytes.count) }) else { return nil }
        let capacity = QRCapacity(version)
        size = version * 4 + 17
        modules = [Bool](repeating: false, count: size * size)
        isFixed = modules
        drawFixedPatterns(version)
        place(QRCodewords(bytes, capacity).interleaved)
        let candidates = (0..<8).map { masked($0) }
        if let best = candidates.min(by: { $0.penalty < $1.penalty }) { self = best }
    }

    /// Whether a module is dark; what is outside is light.
    subscript(row: Int, column: Int) -> Bool {
        guard (0..<size).contains(row), (0..<size).contains(column) else { return false }
        return modules[row * size + column]
    }

    private mutating func fix(_ row: Int, _ column: Int, _ isDark: Bool) {
        guard (0..<size).contains(row), (0..<size).contains(column) else { return }
        modules[row * size + column] = isDark
        isFixed[row * size + column] = true
    }

    private mutating func drawFixedPatterns(_ version: Int) {
        for index in 0..<size {
            fix(6, index, index % 2 == 0)
            fix(index, 6, index % 2 == 0)
        }
        for (row, column) in [(3, 3), (3, size - 4), (size - 4, 3)] { drawFinder(row, column) }
        let centres = Self.alignmentCentres(version)
        for row in centres {
            for column in centres {
                let isFinder =
                    [row, column] == [6, 6] || [row, column] == [6, size - 7] || [row, column] == [size - 7, 6]
                if !isFinder { drawAlignment(row, column) }
            }
        }
        drawFormat(mask: 0)
        drawVersion(version)
    }

    private mutating func drawFinder(_ row: Int, _ column: Int) {
        for down in -4...4 {
            for right in -4...4 {
                let ring = max(abs(down), abs(right))
                fix(row + down, column + right, ring != 2 && ring != 4)
            }
        }
    }

    private mutating func drawAlignment(_ row: Int, _ column: Int) {
        for down in -2...2 {
            for right in -2...2 { fix(row + down, column + right, max(abs(down), abs(right)) != 1) }
        }
    }

    private static func alignmentCentres(_ version: Int) -> [Int] {
        guard version > 1 else { return [] }
        let count = version / 7 + 2
        let step = (version * 8 + count * 3 + 5) / (count * 4 - 4) * 2
        return [6] + (0..<count - 1).map { version * 4 + 10 - $0 * step }.reversed()
    }

    private mutating func drawFormat(mask: Int) {
        let data = 0b01 << 3 | mask
        let bits = (data << 10 | Self.remainder(of: data, bits: 10, by: 0x537)) ^ 0x5412
        let bit = { (index: Int) in bits >> index & 1 == 1 }
        for index in 0...5 { fix(index, 8, bit(index)) }
        fix(7, 8, bit(6))
        fix(8, 8, bit(7))
        fix(8, 7, bit(8))
        for index in 9...14 { fix(8, 14 - index, bit(index)) }
        for index in 0...7 { fix(8, size - 1 - index, bit(index)) }
        for index in 8...14 { fix(size - 15 + index, 8, bit(index)) }
        fix(size - 8, 8, true)
    }

    private mutating func drawVersion(_ version: Int) {
        guard version >= 7 else { return }
        let bits = version << 12 | Self.remainder(of: version, bits: 12, by: 0x1F25)
        for index in 0..<18 {
            let isDark = bits >> index & 1 == 1
            fix(size - 11 + index % 3, index / 3, isDark)
            fix(index / 3, size - 11 + index % 3, isDark)
        }
    }

    private static func remainder(of data: Int, bits: Int, by polynomial: Int) -> Int {
        var remainder = data
        for _ in 0..<bits { remainder = remainder << 1 ^ (remainder >> (bits - 1) & 1) * polynomial }
        return remainder & (1 << bits - 1)
    }

    /// Puts the bits where there is room, two columns at a time, from the right, up and down in turns.
    private mutating func place(_ codewords: [UInt8]) {
        var bits: ArraySlice<Bool> = []
        for byte in codewords { bits += (0..<8).map { byte >> (7 - $0) & 1 == 1 } }
        for right in stride(from: size - 1, through: 1, by: -2).map({ $0 <= 6 ? $0 - 1 : $0 }) {
            let isUpward = (right + 1) & 2 == 0
            for step in 0..<size {
                let row = isUpward ? size - 1 - step : step
                for column in [right, right - 1] where !isFixed[row * size + column] {
                    modules[row * size + column] = bits.popFirst() ?? false
                }
            }
        }
    }

    private func masked(_ mask: Int) -> QRCode {
        var code = self
        for row in 0..<size {
            for column in 0..<size where !isFixed[row * size + column] && Self.inverts(mask, row, column) {
                code.modules[row * size + column].toggle()
            }
        }
        code.drawFormat(mask: mask)
        return code
    }

    private static func inverts(_ mask: Int, _ row: Int, _ column: Int) -> Bool {
        switch mask {
        case 0: (row + column) % 2 == 0
        case 1: row % 2 == 0
        case 2: column % 3 == 0
        case 3: (row + column) % 3 == 0
        case 4: (row / 2 + column / 3) % 2 == 0
        case 5: row * column % 2 + row * column % 3 == 0
        case 6: (row * column % 2 + row * column % 3) % 2 == 0
        default: ((row + column) % 2 + row * column % 3) % 2 == 0
        }
    }

    /// How hard it is to read: long runs, blocks and what looks like a finder (§7.8.3).
    private var penalty: Int {
        var penalty = abs(modules.count { $0 } * 20 - modules.count * 10) / modules.count * 10
        let finder = [true, false, true, true, true, false, true, false, false, false, false]
        for index in 0..<size {
            for line in [(0..<size).map { self[index, $0] }, (0..<size).map { self[$0, index] }] {
                var run = 0
                for place in line.indices {
                    run = place > 0 && line[place] == line[place - 1] ? run + 1 : 1
                    if run >= 5 { penalty += run == 5 ? 3 : 1 }
                    let part = line[place...].prefix(11)
                    if part.elementsEqual(finder) || part.elementsEqual(finder.reversed()) { penalty += 40 }
                }
            }
        }
        for row in 0..<size - 1 {
            for column in 0..<size - 1 {
                let corner = self[row, column]
                if self[row, column + 1] == corner, self[row + 1, column] == corner, self[row + 1, column + 1] == corner
                {
                    penalty += 3
                }
            }
        }
        return penalty
    }
}

extension QRCode {
    /// How many columns of a terminal the code needs, with its margin.
    var columns: Int { size + 8 }

    /// The code as lines of text, two rows of modules in each, with the light margin that readers need. `colours` says
    /// that the terminal understands them; else its background is taken to be dark.
    func lines(colours: Bool) -> [String] {
        stride(from: -4, to: size + 4, by: 2).map { row in
            let cells = (-4..<size + 4).map { column -> Character in
                switch (self[row, column], self[row + 1, column]) {
                case (false, false): "█"
                case (false, true): "▀"
                case (true, false): "▄"
                case (true, true): " "
                }
            }
            return colours ? "\u{1B}[97;40m\(String(cells))\u{1B}[0m" : String(cells)
        }
    }
}
