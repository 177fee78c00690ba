/// A URL taken apart at its delimiters; also used for patterns, so nothing is judged here but the delimiters.
package struct URLParts {
    /// What stands before `://`.
    package var scheme: [UInt8]

    /// The host; an IPv6 address in its brackets.
    package var host: [UInt8]

    /// What stands behind the host's colon; `nil` without a colon.
    package var port: [UInt8]?

    /// The path with single slashes.
    package var path: [UInt8]

    /// What stands behind the question mark; `nil` without one.
    package var query: [UInt8]?

    /// Takes a URL apart.
    ///
    /// - Throws: ``ResourceURLError``.
    package init(_ bytes: [UInt8]) throws(ResourceURLError) {
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[(colon + 1)...].starts(with: "//".utf8) else {
            throw .notURL
        }
        scheme = Array(bytes[..<colon])
        var rest = bytes[(colon + 3)...]
        let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        rest = rest[authority.endIndex...]
        guard !authority.contains(UInt8(ascii: "@")) else { throw .userInfo }
        if authority.first == UInt8(ascii: "["), let close = authority.firstIndex(of: UInt8(ascii: "]")) {
            host = Array(authority[...close])
            let after = authority[(close + 1)...]
            guard after.isEmpty || after.first == UInt8(ascii: ":") else { throw .host }
            port = after.isEmpty ? nil : Array(after.dropFirst())
        } else if let colon = authority.firstIndex(of: UInt8(ascii: ":")) {
            host = Array(authority[..<colon])
            port = Array(authority[(colon + 1)...])
        } else {
            host = Array(authority)
            port = nil
        }
        (path, query) = Self.pathAndQuery(rest)
    }

    /// Takes what stands behind the authority apart.
    static func pathAndQuery(_ rest: ArraySlice<UInt8>) -> (path: [UInt8], query: [UInt8]?) {
        let path = rest.prefix { $0 != UInt8(ascii: "?") }
        let query = path.endIndex < rest.endIndex ? Array(rest[(path.endIndex + 1)...]) : nil
        return (collapsingSlashes(path), query)
    }

    private static func collapsingSlashes(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var path: [UInt8] = []
        path.reserveCapacity(bytes.underestimatedCount)
        for byte in bytes where !(byte == UInt8(ascii: "/") && path.last == byte) { path.append(byte) }
        return path
    }
}

/// Percent escapes brought into their one form.
package enum EscapedText {
    /// A path in its one form.
    ///
    /// - Throws: ``ResourceURLError`` for what two programs could read differently.
    package static func path(_ bytes: [UInt8]) throws(ResourceURLError) -> String {
        guard bytes.allSatisfy({ !isForbidden($0) }) else { throw .forbiddenCharacter }
        let text = try normalised(bytes) { value, next throws(ResourceURLError) in
            switch value {
            case UInt8(ascii: "/"): throw .encodedSlash
            case UInt8(ascii: "\\"): throw .backslash
            case UInt8(ascii: "%") where next: throw .doubleEncoding
            case 0..<0x20, 0x7F: throw .encodedControl
            default: break
            }
        }
        // Neither escapes nor dots nor semicolons: most paths.
        guard text.contains(where: { isJudged($0) }) else {
            return String(decoding: text, as: UTF8.self)
        }
        // `%25%32%65` is `%252e` once its own escapes are brought into their one form.
        var rest = text[...]
        while let percent = rest.firstIndex(of: UInt8(ascii: "%")) {
            rest = rest[(percent + 1)...]
            if rest.starts(with: "25".utf8), value(rest.dropFirst(2).prefix(2)) != nil { throw .doubleEncoding }
        }
        for segment in text.split(separator: UInt8(ascii: "/")) { try check(segment: segment) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Whether RFC 3986 wants a byte of a path to be escaped that it may be written as.
    private static func isForbidden(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "^"), UInt8(ascii: "`"),
            UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
            true
        default: false
        }
    }

    /// A path in its one form, with what it is compared by: an escape of a character that a path may have as it is
    /// stands for that character. All programs read `/a%40b` as `/a@b`, so that a policy about the one is about both.
    ///
    /// This is not the path's one form, because some programs do not read a bare `+` as they read `%2B`: what is
    /// forwarded stays as it was sent.
    ///
    /// - Parameter path: a path in its one form.
    /// - Returns: what it is compared by.
    package static func compared(_ path: String) -> String {
        guard path.utf8.contains(UInt8(ascii: "%")) else { return path }
        var text: [UInt8] = []
        var rest = Array(path.utf8)[...]
        while let byte = popCompared(&rest) { text.append(byte) }
        return String(decoding: text, as: UTF8.self)
    }

    /// What is left of a path in its one form without its beginning.
    ///
    /// - Parameters:
    ///   - count: how many bytes of the compared path (``compared(_:)``) the beginning has.
    ///   - path: a path in its one form.
    /// - Returns: the rest, as it stands in the path.
    package static func dropping(_ count: Int, of path: String) -> String {
        var rest = Array(path.utf8)[...]
        for _ in 0..<count { _ = popCompared(&rest) }
        return String(decoding: rest, as: UTF8.self)
    }

    /// Takes the next byte of the compared path from the beginning of a path.
    private static func popCompared(_ rest: inout ArraySlice<UInt8>) -> UInt8? {
        guard let byte = rest.popFirst() else { return nil }
        guard byte == UInt8(ascii: "%"), let escaped = value(rest.prefix(2)), isWritten(escaped) else { return byte }
        rest = rest.dropFirst(2)
        return escaped
    }

    /// Whether a path may have a byte as it is, where that says the same as its escape.
    private static func isWritten(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && !isForbidden(byte) && !"%/?#\\;".utf8.contains(byte)
    }

    /// Whether a segment with this byte can be one that some server reads differently.
    private static func isJudged(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ".") || byte == UInt8(ascii: "%") || byte == UInt8(ascii: ";")
    }

    /// Refuses a segment in which some server finds a slash, dots to go up by, or an end before its end.
    private static func check(segment: ArraySlice<UInt8>) throws(ResourceURLError) {
        // Neither dots nor semicolons nor anything that could be one: most segments.
        guard segment.contains(where: { isJudged($0) }) else { return }
        var read = String(decoding: segment, as: UTF8.self)
        if segment.contains(UInt8(ascii: "%")) {
            read = try decoded(segment)
            // Some servers bring `．` and `／` into their compatible form, and drop what nobody sees.
            read = NameFolding.fold(read)
            guard !read.utf8.contains(UInt8(ascii: "/")), !read.utf8.contains(UInt8(ascii: "\\")) else {
                throw .encodedSlash
            }
        }
        // Some drop what follows a semicolon before they resolve dots.
        let name = read.prefix { $0 != ";" }.filter { !$0.isWhitespace }
        guard name != ".", name != ".." else { throw .dotSegment }
        // And some serve `/transfers;x` as `/transfers`, about which other routes and policies speak.
        guard !read.utf8.contains(UInt8(ascii: ";")) else { throw .pathParameter }
    }

    /// What escaped text stands for. Over-long forms are not UTF-8, and some programs read them as ASCII.
    private static func decoded(_ text: some Sequence<UInt8>) throws(ResourceURLError) -> String {
        guard let decoded = PercentEncoding.decode(String(decoding: Array(text), as: UTF8.self)) else {
            throw .notUTF8
        }
        return decoded
    }

    /// A query in its one form.
    ///
    /// - Throws: ``ResourceURLError`` for characters that must be escaped, for U+0000, and for escapes that are not
    ///   UTF-8.
    package static func query(_ bytes: [UInt8]) throws(ResourceURLError) -> String {
        guard bytes.allSatisfy({ !"\"<>".utf8.contains($0) }) else { throw .forbiddenCharacter }
        let text = try normalised(bytes) { value, _ throws(ResourceURLError) in
            guard value != 0 else { throw .encodedControl }
        }
        _ = try decoded(text)
        return String(decoding: text, as: UTF8.self)
    }

    private static func normalised(
        _ bytes: [UInt8], check: (_ value: UInt8, _ digitsFollow: Bool) throws(ResourceURLError) -> Void
    ) throws(ResourceURLError) -> [UInt8] {
        guard bytes.contains(UInt8(ascii: "%")) else { return bytes }
        var text: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                text.append(byte)
                continue
            }
            guard let value = Self.value(rest.prefix(2)) else { throw .escape }
            rest = rest.dropFirst(2)
            try check(value, Self.value(rest.prefix(2)) != nil)
            if value.isURIUnreserved { text.append(value) } else { text += "%\(Hex.encode([value]).uppercased())".utf8 }
        }
        return text
    }

    private static func value(_ digits: ArraySlice<UInt8>) -> UInt8? {
        guard digits.count == 2 else { return nil }
        return Hex.decode(String(decoding: digits, as: UTF8.self))?.first
    }
}
