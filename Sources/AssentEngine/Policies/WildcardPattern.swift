/// A text with wildcards, matched without regard to ASCII case in time that grows with the sum of both lengths.
///
/// `*` stands for any run of characters, also none and also with slashes; `-*-` for a run within one segment. A pattern
/// has one kind of them.
struct WildcardPattern: Sendable, Hashable {
    private let segments: [[[UInt8]]]
    private let isPerSegment: Bool

    /// A pattern; `nil` when it has both kinds of wildcards.
    init?(_ text: some Sequence<UInt8>) {
        let text = text.map(Self.lowercased)
        let perSegment = Self.split(text, at: Array("-*-".utf8))
        if perSegment.count > 1 {
            guard perSegment.allSatisfy({ !$0.contains(UInt8(ascii: "*")) }) else { return nil }
            isPerSegment = true
            segments = text.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
                .map { Self.split(Array($0), at: Array("-*-".utf8)) }
        } else {
            isPerSegment = false
            segments = [Self.split(text, at: [UInt8(ascii: "*")])]
        }
    }

    /// Whether the whole of `text` matches. `steps` grows by the number of comparisons made.
    func matches(_ text: some Sequence<UInt8>, steps: inout Int) -> Bool {
        // Most patterns have no wildcards, or are one: then the text need not be copied.
        if let whole {
            steps += 2 * whole.count
            return text.lazy.map(Self.lowercased).elementsEqual(whole)
        }
        if matchesEverything { return true }
        let text = text.map(Self.lowercased)
        guard isPerSegment else { return Self.matches(segments.first ?? [], text[...], steps: &steps) }
        let parts = text.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == segments.count else { return false }
        return zip(segments, parts).allSatisfy { Self.matches($0, $1, steps: &steps) }
    }

    /// Whether it is a wildcard that stands for all texts.
    private var matchesEverything: Bool {
        guard !isPerSegment, let pieces = segments.first else { return false }
        return pieces.count > 1 && pieces.allSatisfy(\.isEmpty)
    }

    /// The only text that matches; `nil` for a pattern with wildcards.
    private var whole: [UInt8]? {
        guard !isPerSegment, let pieces = segments.first, pieces.count == 1 else { return nil }
        return pieces[0]
    }

    /// A text that the pattern matches: `filling` stands where its wildcards are.
    func filled(with filling: String) -> [UInt8] {
        Array(segments.map { Array($0.joined(separator: filling.utf8)) }.joined(separator: "/".utf8))
    }

    /// Whether some text matches both patterns.
    func overlaps(_ other: Self) -> Bool {
        let (left, right) = (parts, other.parts)
        // Which beginnings of both patterns some text matches: a row for each beginning of `left`.
        var row = Array(repeating: false, count: right.count + 1)
        row[0] = true
        for index in 0...left.count {
            let part = index < left.count ? left[index] : nil
            var next = Array(repeating: false, count: right.count + 1)
            for place in 0...right.count where row[place] {
                let opposite = place < right.count ? right[place] : nil
                if part?.isRun == true { next[place] = true }
                if opposite?.isRun == true { row[place + 1] = true }
                guard let part, let opposite else { continue }
                switch (part, opposite) {
                case (.byte(let byte), .byte(let same)): if byte == same { next[place + 1] = true }
                case (.byte(let byte), _): if opposite.runs(over: byte) { next[place] = true }
                case (_, .byte(let byte)): if part.runs(over: byte) { row[place + 1] = true }
                default: break
                }
            }
            if index == left.count { return row[right.count] }
            row = next
        }
        return false
    }

    /// One byte, or a wildcard.
    private enum Part {
        case byte(UInt8)
        case anything
        case withinSegment

        var isRun: Bool { if case .byte = self { false } else { true } }

        func runs(over byte: UInt8) -> Bool {
            switch self {
            case .byte: false
            case .anything: true
            case .withinSegment: byte != UInt8(ascii: "/")
            }
        }
    }

    private var parts: [Part] {
        let wildcard = isPerSegment ? Part.withinSegment : .anything
        let segments = segments.map { pieces in
            Array(pieces.map { $0.map(Part.byte) }.joined(separator: [wildcard]))
        }
        return Array(segments.joined(separator: [.byte(UInt8(ascii: "/"))]))
    }

    /// Each piece is taken at the first place where it fits, which leaves most for those that follow: no going back.
    private static func matches(_ pieces: [[UInt8]], _ text: ArraySlice<UInt8>, steps: inout Int) -> Bool {
        guard let first = pieces.first, let last = pieces.last else { return false }
        steps += first.count + last.count
        guard pieces.count > 1 else { return text.elementsEqual(first) }
        guard text.starts(with: first), text.count >= first.count + last.count,
            text.suffix(last.count).elementsEqual(last)
        else { return false }
        var rest = text.dropFirst(first.count).dropLast(last.count)
        for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
            guard let end = endOfFirst(piece, in: rest, steps: &steps) else { return false }
            rest = rest[end...]
        }
        return true
    }

    /// Knuth, Morris, Pratt: a failed comparison never looks at a byte of the text again from the beginning of the
    /// piece.
    private static func endOfFirst(_ piece: [UInt8], in text: ArraySlice<UInt8>, steps: inout Int) -> Int? {
        var fallback = [0]
        var matched = 0
        for byte in piece.dropFirst() {
            while matched > 0, piece[matched] != byte {
                matched = fallback[matched - 1]
                steps += 1
            }
            steps += 1
            if piece[matched] == byte { matched += 1 }
            fallback.append(matched)
        }
        matched = 0
        for (index, byte) in zip(text.indices, text) {
            while matched > 0, piece[matched] != byte {
                matched = fallback[matched - 1]
                steps += 1
            }
            steps += 1
            if piece[matched] == byte { matched += 1 }
            if matched == piece.count { return index + 1 }
        }
        return nil
    }

    private static func split(_ text: [UInt8], at separator: [UInt8]) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var piece: [UInt8] = []
        var rest = text[...]
        while let byte = rest.first {
            if rest.starts(with: separator) {
                pieces.append(piece)
                piece = []
                rest = rest.dropFirst(separator.count)
            } else {
                piece.append(byte)
                rest = rest.dropFirst()
            }
        }
        return pieces + [piece]
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte + 0x20 : byte
    }
}
