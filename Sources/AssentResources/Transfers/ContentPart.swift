import AssentCore
import HTTPTypes

/// Which bytes of a content a reply has (RFC 9110 §14.4).
struct ContentPart: Sendable, Hashable {
    let first: Int
    let last: Int
    /// The bytes of the whole content.
    let total: Int

    /// Reads `bytes 5-9/10`; `nil` for everything else, also where the whole length is not named.
    init?(_ field: String?) {
        guard let field, field.utf8.count <= 64, field.hasPrefix("bytes ") else { return nil }
        let halves = field.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2, let total = Self.number(halves[1]) else { return nil }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
            last < total
        else { return nil }
        (self.first, self.last, self.total) = (first, last, total)
    }

    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text)
    }
}

extension HTTPResponse {
    /// The content's name, if it stands for just these bytes: a strong `ETag` (RFC 9110 §8.8.3).
    var strongETag: String? {
        guard let tag = headerFields[.eTag], tag.utf8.count >= 2, tag.utf8.count <= 1024, tag.hasPrefix("\""),
            tag.hasSuffix("\""),
            tag.utf8.dropFirst().dropLast().allSatisfy({ $0.isASCIIPrintable && $0 != 0x22 && $0 != 0x20 })
        else { return nil }
        return tag
    }

    /// Whether the rest of this content can be asked for.
    var isContinuable: Bool { status == .ok && strongETag != nil && headerFields[.acceptRanges] == "bytes" }
}

extension HTTPCall {
    /// The same call for what follows after `count` bytes, or the whole if the content is another one by now.
    func forRest(after count: Int, tag: String) -> HTTPCall {
        var call = self
        call.request.headerFields[.range] = "bytes=\(count)-"
        call.request.headerFields[.ifRange] = tag
        return call
    }
}
