import AssentCore
import Foundation

/// Looks for secrets where none may be, in every form in which they could have got there.
struct SecretSearch: Sendable {
    /// The length of a piece of a secret that counts as a leak.
    static let pieceLength = 12

    private let needles: [(name: String, bytes: [UInt8])]

    /// A search for these secrets, by name.
    init(_ secrets: [(name: String, secret: Secret)]) {
        var needles: [(name: String, bytes: [UInt8])] = []
        for (name, secret) in secrets where secret.count >= 6 {
            let bytes = secret.revealBytes()
            let percent = bytes.map { "%" + Hex.encode([$0]).uppercased() }.joined()
            let forms: [[UInt8]] = [
                bytes, Array(Base64URL.encode(bytes).utf8), Array(Data(bytes).base64EncodedString().utf8),
                Array(Hex.encode(bytes).utf8), Array(Hex.encode(bytes).uppercased().utf8), Array(percent.utf8),
            ]
            for form in forms {
                if form.count <= Self.pieceLength {
                    needles.append((name, form))
                } else {
                    for start in 0...(form.count - Self.pieceLength) {
                        needles.append((name, Array(form[start..<(start + Self.pieceLength)])))
                    }
                }
            }
        }
        self.needles = needles
    }

    /// The names of the secrets that are in `haystack`, in whole or in part.
    func found(in haystack: [UInt8]) -> Set<String> {
        var pieces: [Int: Set<[UInt8]>] = [:]
        for length in Set(needles.map(\.bytes.count)) where length <= haystack.count {
            var seen: Set<[UInt8]> = []
            for start in 0...(haystack.count - length) { seen.insert(Array(haystack[start..<(start + length)])) }
            pieces[length] = seen
        }
        return Set(needles.filter { pieces[$0.bytes.count]?.contains($0.bytes) ?? false }.map(\.name))
    }

    /// The names of the secrets that are in the files below a directory.
    func found(below directory: String) throws -> Set<String> {
        var found: Set<String> = []
        for path in try FileManager.default.subpathsOfDirectory(atPath: directory) {
            if let data = FileManager.default.contents(atPath: directory + "/" + path) {
                found.formUnion(self.found(in: [UInt8](data)))
            }
        }
        return found
    }
}
