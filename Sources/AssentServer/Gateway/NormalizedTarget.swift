import AssentCore

/// A request's path and query in the one form that the gateway decides on and forwards.
///
/// What two readers could read differently is refused, not repaired: dot segments, empty segments, encoded slashes and
/// backslashes, control characters, double encoding. What remains is written one way: unreserved characters plain, other
/// escapes in upper case (RFC 3986 §6.2.2).
struct NormalizedTarget: Hashable, Sendable {
    /// The path, for example `/transfers`.
    let path: String

    /// The query without `_txid`, or `nil` when nothing is left of it.
    let query: String?

    /// The transaction id that the query carried as `_txid`.
    let transactionID: String?

    /// Path and query, as forwarded.
    var text: String { query.map { "\(path)?\($0)" } ?? path }

    /// Why a request target is refused.
    enum Refusal: String, Error, Hashable, Sendable {
        case tooLong = "The URL is too long."
        case notOriginForm = "The request target must be a path."
        case invalidCharacter = "The URL has a character that must be percent-encoded."
        case invalidEscape = "The URL has an incomplete percent-encoding."
        case controlCharacter = "The URL has a control character."
        case dotSegment = "The path has a dot segment."
        case emptySegment = "The path has an empty segment."
        case encodedSeparator = "The path has an encoded slash or backslash."
        case doubleEncoding = "The URL is percent-encoded twice."
        case repeatedTransactionID = "The URL has more than one _txid."
    }

    /// The longest target that is read, in bytes.
    static let maxLength = 8192

    /// The query item that carries a transaction id back.
    static let transactionParameter = "_txid"

    /// Reads a request target as it came on the wire.
    init(_ target: String) throws(Refusal) {
        guard target.utf8.count <= Self.maxLength else { throw .tooLong }
        guard target.utf8.first == UInt8(ascii: "/") else { throw .notOriginForm }
        let mark = target.utf8.firstIndex(of: UInt8(ascii: "?"))
        path = try Self.path(Array(target.utf8[..<(mark ?? target.utf8.endIndex)]))
        guard let mark else {
            query = nil
            transactionID = nil
            return
        }
        var kept: [String] = []
        var found: String?
        for item in target.utf8[target.utf8.index(after: mark)...].split(separator: UInt8(ascii: "&")) {
            let written = try Self.normalized(Array(item), isPath: false)
            let prefix = Self.transactionParameter + "="
            guard written.hasPrefix(prefix) || written == Self.transactionParameter else {
                kept.append(written)
                continue
            }
            guard found == nil else { throw .repeatedTransactionID }
            found = String(written.dropFirst(prefix.count))
        }
        query = kept.isEmpty ? nil : kept.joined(separator: "&")
        transactionID = found
    }

    private static func path(_ bytes: [UInt8]) throws(Refusal) -> String {
        let written = try normalized(bytes, isPath: true)
        let segments = written.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            if segment.isEmpty, index < segments.count - 1 { throw .emptySegment }
            let name = segment.prefix { $0 != ";" }
            if name == "." || name == ".." { throw .dotSegment }
        }
        return written
    }

    private static func normalized(_ bytes: [UInt8], isPath: Bool) throws(Refusal) -> String {
        var written: [UInt8] = []
        written.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            guard byte == UInt8(ascii: "%") else {
                guard allowed(byte, isPath: isPath) else {
                    throw byte < 0x20 || byte == 0x7F ? .controlCharacter : .invalidCharacter
                }
                written.append(byte)
                index += 1
                continue
            }
            guard index + 2 < bytes.count,
                let decoded = Hex.decode(String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self))?.first
            else { throw .invalidEscape }
            guard decoded >= 0x20, decoded != 0x7F else { throw .controlCharacter }
            if isPath, decoded == UInt8(ascii: "/") || decoded == UInt8(ascii: "\\") { throw .encodedSeparator }
            if decoded == UInt8(ascii: "%"), index + 4 < bytes.count,
                Hex.decode(String(decoding: bytes[(index + 3)...(index + 4)], as: UTF8.self)) != nil
            {
                throw .doubleEncoding
            }
            if unreserved(decoded) {
                written.append(decoded)
            } else {
                written += Array("%\(Hex.encode([decoded]).uppercased())".utf8)
            }
            index += 3
        }
        return String(decoding: written, as: UTF8.self)
    }

    private static func unreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    private static func allowed(_ byte: UInt8, isPath: Bool) -> Bool {
        if unreserved(byte) { return true }
        return (isPath ? "!$&'()*+,;=:@/" : "!$'()*+,;=:@/?").utf8.contains(byte)
    }
}
