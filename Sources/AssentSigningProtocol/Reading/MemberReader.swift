package import AssentCore

/// Takes the members of a JSON object one by one; what is left over at the end is refused.
package struct MemberReader {
    private let object: JSONObject
    private let place: String
    private var taken = 0

    /// A reader of this object. `place` is where it stands in the message, for errors.
    package init(_ object: JSONObject, at place: String = "") {
        self.object = object
        self.place = place
    }

    /// Refuses members that nobody asked for. The parser has refused members that occur twice, so counting is enough.
    package func finish() throws(SigningProtocolError) {
        guard taken == object.members.count else {
            throw SigningProtocolError(
                .unknownMember, "The message has a member that is not known\(place.isEmpty ? "" : " in \(place)").",
                member: place.isEmpty ? nil : place)
        }
    }

    /// The path of a member, for errors.
    package func path(_ name: String) -> String { place.isEmpty ? name : "\(place).\(name)" }

    /// Whether there is such a member.
    package func has(_ name: String) -> Bool { object[name] != nil }

    /// A member as it is, if it is there.
    package mutating func take(_ name: String) -> JSONValue? {
        guard let value = object[name] else { return nil }
        taken += 1
        return value
    }

    /// A member as it is.
    package mutating func value(_ name: String) throws(SigningProtocolError) -> JSONValue {
        guard let value = take(name) else {
            throw SigningProtocolError(.missingMember, "The member \(path(name)) is missing.", member: path(name))
        }
        return value
    }

    /// Reads a member with `read` if it is there.
    package mutating func optional<Value>(
        _ name: String, _ read: (inout MemberReader, String) throws(SigningProtocolError) -> Value
    ) throws(SigningProtocolError) -> Value? {
        has(name) ? try read(&self, name) : nil
    }

    /// `v`, which must be 1.
    package mutating func version() throws(SigningProtocolError) {
        guard case .number(let number) = try value("v"), let version = StrictJSON.integer(number) else {
            throw .invalid(path("v"), "is not a version")
        }
        guard version == 1 else {
            throw SigningProtocolError(
                .versionUnsupported, "The message is of version \(version); only version 1 is known here.", member: "v")
        }
    }

    /// An integer within bounds.
    package mutating func integer(
        _ name: String, _ bounds: ClosedRange<Int> = 0...StrictJSON.maximumInteger
    ) throws(SigningProtocolError) -> Int {
        guard case .number(let number) = try value(name), let value = StrictJSON.integer(number),
            bounds.contains(value)
        else {
            throw .invalid(path(name), "is not an integer from \(bounds.lowerBound) to \(bounds.upperBound)")
        }
        return value
    }

    /// `true` or `false`.
    package mutating func bool(_ name: String) throws(SigningProtocolError) -> Bool {
        guard let value = try value(name).bool else { throw .invalid(path(name), "is not true or false") }
        return value
    }

    /// A member that is only ever `true`, or absent.
    package mutating func flag(_ name: String) throws(SigningProtocolError) -> Bool {
        guard has(name) else { return false }
        guard try bool(name) else { throw .invalid(path(name), "may only be true, or absent") }
        return true
    }

    /// A text of so many bytes of printable ASCII.
    package mutating func ascii(_ name: String, _ count: ClosedRange<Int>) throws(SigningProtocolError) -> String {
        guard let text = try value(name).string, count.contains(text.utf8.count),
            text.utf8.allSatisfy(\.isASCIIPrintable)
        else {
            throw .invalid(
                path(name), "is not a text of \(count.lowerBound) to \(count.upperBound) printable ASCII characters")
        }
        return text
    }

    /// A text that may be shown, of so many Unicode scalars.
    package mutating func shown(_ name: String, _ count: ClosedRange<Int>) throws(SigningProtocolError) -> String {
        guard let text = try value(name).string else { throw .invalid(path(name), "is not a text") }
        try ShownText.check(text, count, at: path(name))
        return text
    }

    /// A name of 1 to 32 of `a`–`z`, `0`–`9` and `-`.
    package mutating func label(_ name: String) throws(SigningProtocolError) -> String {
        let text = try ascii(name, 1...32)
        guard SigningLabel.isValid(text) else { throw .invalid(path(name), "has characters other than a–z, 0–9 and -") }
        return text
    }

    /// A value out of a fixed list.
    package mutating func choice<Choice: RawRepresentable<String>>(
        _ name: String, _ type: Choice.Type = Choice.self
    ) throws(SigningProtocolError) -> Choice {
        let text = try ascii(name, 1...64)
        guard let choice = Choice(rawValue: text) else { throw .invalid(path(name), "has a value that is not known") }
        return choice
    }

    /// Bytes of a fixed number.
    package mutating func fixed<Size: FixedByteCount>(
        _ name: String, _ type: FixedBytes<Size>.Type = FixedBytes<Size>.self
    ) throws(SigningProtocolError) -> FixedBytes<Size> {
        guard let text = try value(name).string, let value = FixedBytes<Size>(text: text) else {
            throw .invalid(path(name), "is not base64url of \(Size.byteCount) bytes")
        }
        return value
    }

    /// Base64url of so many bytes.
    package mutating func bytes(_ name: String, count: Int) throws(SigningProtocolError) -> [UInt8] {
        guard let text = try value(name).string, text.utf8.count <= count * 2, let bytes = Base64URL.decode(text),
            bytes.count == count
        else { throw .invalid(path(name), "is not base64url of \(count) bytes") }
        return bytes
    }

    /// An issuer's name: an `https` URL without query, fragment and trailing slash.
    package mutating func issuer(_ name: String) throws(SigningProtocolError) -> String {
        let text = try ascii(name, 9...512)
        guard IssuerName.isValid(text) else { throw .invalid(path(name), "is not an issuer's name") }
        return text
    }

    /// A P-256 key: exactly `crv`, `kty`, `x` and `y`.
    package mutating func key(_ name: String) throws(SigningProtocolError) -> ProtocolKey {
        try ProtocolKey(try value(name), at: path(name))
    }

    /// Another message in its compact form, of at most `limit` characters; only its characters are looked at.
    package mutating func compact(
        _ name: String, limit: Int = MessageType.maximumLength
    ) throws(SigningProtocolError) -> String {
        try Self.compact(try value(name), limit: limit, at: path(name))
    }

    private static func compact(_ value: JSONValue, limit: Int, at place: String) throws(SigningProtocolError) -> String
    {
        guard let text = value.string, (1...limit).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0.isASCIIAlphanumeric || "-_.".utf8.contains($0) })
        else { throw .invalid(place, "is not a compact message of at most \(limit) characters") }
        return text
    }

    /// An array of so many elements.
    package mutating func elements(
        _ name: String, _ count: ClosedRange<Int>
    ) throws(SigningProtocolError) -> [JSONValue] {
        guard let elements = try value(name).array, count.contains(elements.count) else {
            throw .invalid(
                path(name), "is not an array of \(count.lowerBound) to \(count.upperBound) elements")
        }
        return elements
    }

    /// Compact messages.
    package mutating func compacts(
        _ name: String, _ count: ClosedRange<Int>, limit: Int = MessageType.maximumLength
    ) throws(SigningProtocolError) -> [String] {
        var texts: [String] = []
        for (index, element) in try elements(name, count).enumerated() {
            texts.append(try Self.compact(element, limit: limit, at: path("\(name)[\(index)]")))
        }
        return texts
    }

    /// Objects.
    package mutating func objects<Part: MessagePart>(
        _ name: String, _ count: ClosedRange<Int>
    ) throws(SigningProtocolError) -> [Part] {
        var parts: [Part] = []
        for (index, element) in try elements(name, count).enumerated() {
            parts.append(try Self.part(element, at: path("\(name)[\(index)]")))
        }
        return parts
    }

    /// An object.
    package mutating func object<Part: MessagePart>(_ name: String) throws(SigningProtocolError) -> Part {
        try Self.part(try value(name), at: path(name))
    }

    private static func part<Part: MessagePart>(_ value: JSONValue, at place: String) throws(SigningProtocolError)
        -> Part
    {
        guard let object = value.object else { throw .invalid(place, "is not an object") }
        var reader = MemberReader(object, at: place)
        let part = try Part(reading: &reader)
        try reader.finish()
        return part
    }

    /// Different values out of a fixed list.
    package mutating func choices<Choice: RawRepresentable<String> & Hashable>(
        _ name: String, _ count: ClosedRange<Int>
    ) throws(SigningProtocolError) -> [Choice] {
        var choices: [Choice] = []
        for element in try elements(name, count) {
            guard let text = element.string, text.utf8.allSatisfy(\.isASCIIPrintable),
                let choice = Choice(rawValue: text), !choices.contains(choice)
            else { throw .invalid(path(name), "has a value that is not known, or one twice") }
            choices.append(choice)
        }
        return choices
    }

    /// Different thumbprints.
    package mutating func thumbprints(
        _ name: String, _ count: ClosedRange<Int>
    ) throws(SigningProtocolError) -> [KeyThumbprint] {
        var thumbprints: [KeyThumbprint] = []
        for element in try elements(name, count) {
            guard let text = element.string, let thumbprint = KeyThumbprint(text: text),
                !thumbprints.contains(thumbprint)
            else { throw .invalid(path(name), "has a value that is not a thumbprint, or one twice") }
            thumbprints.append(thumbprint)
        }
        return thumbprints
    }

    /// Different ids.
    package mutating func ids(_ name: String, _ count: ClosedRange<Int>) throws(SigningProtocolError) -> [SigningID] {
        var ids: [SigningID] = []
        for element in try elements(name, count) {
            guard let text = element.string, let id = SigningID(text: text), !ids.contains(id) else {
                throw .invalid(path(name), "has a value that is not an id, or one twice")
            }
            ids.append(id)
        }
        return ids
    }

    /// Texts that may be shown, by their names.
    package mutating func shownTexts(
        _ name: String, limit: Int, names: (String) -> Bool, count: ClosedRange<Int>
    ) throws(SigningProtocolError) -> [String: String] {
        guard let object = try value(name).object, object.members.count <= limit else {
            throw .invalid(path(name), "is not an object of at most \(limit) texts")
        }
        var texts: [String: String] = [:]
        for member in object.members {
            guard names(member.name) else { throw .invalid(path(name), "has a name that is not known") }
            guard let text = member.value.string else { throw .invalid(path(name), "has a value that is not a text") }
            try ShownText.check(text, count, at: path("\(name).\(member.name)"))
            texts[member.name] = text
        }
        return texts
    }

    /// The canonical form of an invite's code.
    package mutating func inviteCode(_ name: String) throws(SigningProtocolError) -> InviteCode {
        guard let text = try value(name).string, let code = InviteCode(canonical: text) else {
            throw .invalid(path(name), "is not a code")
        }
        return code
    }

    /// A UUID in lower case.
    package mutating func uuid(_ name: String) throws(SigningProtocolError) -> String {
        let text = try ascii(name, 36...36)
        for (index, byte) in text.utf8.enumerated() {
            let isHyphen = [8, 13, 18, 23].contains(index)
            guard isHyphen ? byte == 0x2D : byte.hexDigitValue != nil && byte == byte.asciiLowercased else {
                throw .invalid(path(name), "is not a UUID")
            }
        }
        return text
    }

    /// A BCP 47 tag of at most 35 characters.
    package mutating func locale(_ name: String) throws(SigningProtocolError) -> String {
        let text = try ascii(name, 2...35)
        guard text.utf8.allSatisfy({ $0.isASCIIAlphanumeric || $0 == 0x2D }) else {
            throw .invalid(path(name), "is not a language tag")
        }
        return text
    }

    /// Base64url of at most 48 KiB of bytes that were hashed.
    package mutating func frame(_ name: String) throws(SigningProtocolError) -> [UInt8] {
        guard let text = try value(name).string, text.utf8.count <= 64 << 10, let bytes = Base64URL.decode(text) else {
            throw .invalid(path(name), "is not base64url of at most 48 KiB")
        }
        return bytes
    }

    /// Different P-256 keys.
    package mutating func keys(
        _ name: String, _ count: ClosedRange<Int>
    ) throws(SigningProtocolError) -> [ProtocolKey] {
        var keys: [ProtocolKey] = []
        for (index, element) in try elements(name, count).enumerated() {
            let key = try ProtocolKey(element, at: path("\(name)[\(index)]"))
            guard !keys.contains(key) else { throw .invalid(path(name), "has a key twice") }
            keys.append(key)
        }
        return keys
    }

    /// A nonce of the server: 1 to 64 visible ASCII characters.
    package mutating func nonce(_ name: String) throws(SigningProtocolError) -> String {
        let text = try ascii(name, 1...64)
        guard text.utf8.allSatisfy(\.isASCIIVisible) else { throw .invalid(path(name), "is not a nonce") }
        return text
    }
}
