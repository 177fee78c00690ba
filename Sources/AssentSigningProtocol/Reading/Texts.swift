import AssentCore

/// Names of keys, policies and statuses.
package enum SigningLabel {
    /// Whether it is 1 to 32 of `a`–`z`, `0`–`9` and `-`.
    package static func isValid(_ text: String) -> Bool {
        (1...32).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isASCIIDigit || ($0.isASCIILetter && $0 == $0.asciiLowercased) || $0 == 0x2D }
    }
}

/// An issuer's name `iss`.
package enum IssuerName {
    /// Whether it is an `https` URL without query, fragment, user name and trailing slash, of at most 512 characters.
    package static func isValid(_ text: String) -> Bool {
        let prefix = "https://"
        return text.utf8.starts(with: prefix.utf8) && (prefix.utf8.count + 1...512).contains(text.utf8.count)
            && text.utf8.last != UInt8(ascii: "/")
            && text.allBytes(satisfy: { $0.isIssuerName })
    }
}

/// Texts that people see.
package enum ShownText {
    /// Checks that `text` may be shown and has so many Unicode scalars.
    ///
    /// - Throws: ``SigningProtocolError`` with `invalidMember`.
    package static func check(
        _ text: String, _ count: ClosedRange<Int>, at place: String
    ) throws(SigningProtocolError) {
        do {
            _ = try DisplayText(text, limit: count.upperBound)
        } catch {
            throw .invalid(place, "may not be shown: \(error.detail)")
        }
        guard text.unicodeScalars.count >= count.lowerBound else { throw .invalid(place, "is empty") }
    }
}
