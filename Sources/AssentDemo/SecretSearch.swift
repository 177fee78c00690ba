import AssentCore
import Foundation

/// Looks for secrets where none may be, in every form in which they could have got there.
struct SecretSearch: Sendable {
    /// The length of a piece of a secret that counts as a leak.
    static let pieceLength = 12

    /// How many bytes of a piece it is looked up by; also the length of the shortest secret that is looked for.
    private static let keyLength = 6

    private struct Piece {
        let name: String
        let bytes: [UInt8]
        /// Whether it is a leak only between characters that are neither letters nor digits: six digits are part of
        /// many numbers.
        let standsAlone: Bool
    }

    private let pieces: [UInt64: [Piece]]

    /// Which keys are worth a look, by a hash: most are not.
    private let filter: [Bool]

    /// A search for these secrets, by name.
    init(_ secrets: [(name: String, secret: Secret)]) {
        var pieces: [UInt64: [Piece]] = [:]
        var filter = [Bool](repeating: false, count: 1 << 20)
        for (name, secret) in secrets where secret.count >= Self.keyLength {
            for form in Self.forms(of: secret.revealBytes()) {
                let length = min(form.count, Self.pieceLength)
                for start in 0...(form.count - length) {
                    let bytes = Array(form[start..<(start + length)])
                    let key = bytes.prefix(Self.keyLength).reduce(0) { $0 << 8 | UInt64($1) }
                    pieces[key, default: []].append(
                        Piece(name: name, bytes: bytes, standsAlone: length < Self.pieceLength))
                    filter[Self.bucket(key)] = true
                }
            }
        }
        self.pieces = pieces
        self.filter = filter
    }

    private static func forms(of bytes: [UInt8]) -> [[UInt8]] {
        var forms: [[UInt8]] = [
            bytes, Array(Hex.encode(bytes).utf8), Array(Hex.encode(bytes).uppercased().utf8),
            Array(bytes.map { "%" + Hex.encode([$0]).uppercased() }.joined().utf8),
        ]
        // In base 64 a text looks another way at each of three places.
        for offset in 0...(bytes.count > pieceLength ? 2 : 0) {
            let rest = Array(bytes.dropFirst(offset))
            forms.append(Array(Base64URL.encode(rest).utf8))
            forms.append(Array(Data(rest).base64EncodedString().utf8))
        }
        return forms
    }

    private static func bucket(_ key: UInt64) -> Int { Int((key &* 0x9E37_79B9_7F4A_7C15) >> 44) }

    /// The names of the secrets that are in `haystack`, in whole or in part.
    func found(in haystack: [UInt8]) -> Set<String> {
        var found: Set<String> = []
        var key: UInt64 = 0
        for index in haystack.indices {
            key = (key << 8 | UInt64(haystack[index])) & (1 << 48 - 1)
            guard filter[Self.bucket(key)], index >= Self.keyLength - 1, let candidates = pieces[key] else { continue }
            let start = index - Self.keyLength + 1
            for piece in candidates where haystack[start...].starts(with: piece.bytes) {
                if piece.standsAlone, !Self.standsAlone(haystack, start, start + piece.bytes.count) { continue }
                found.insert(piece.name)
            }
        }
        return found
    }

    private static func standsAlone(_ bytes: [UInt8], _ start: Int, _ end: Int) -> Bool {
        func isPart(_ index: Int) -> Bool {
            guard bytes.indices.contains(index) else { return false }
            return (0x30...0x39).contains(bytes[index]) || (0x61...0x7A).contains(bytes[index] | 0x20)
        }
        return !isPart(start - 1) && !isPart(end)
    }

    /// The secrets that are in the files below a directory, by the files' paths.
    func found(below directory: String) throws -> [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: directory) {
            guard let data = FileManager.default.contents(atPath: directory + "/" + path) else { continue }
            let names = self.found(in: [UInt8](data))
            if !names.isEmpty { found[path] = names }
        }
        return found
    }
}
