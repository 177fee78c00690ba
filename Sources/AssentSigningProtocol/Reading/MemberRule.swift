package import AssentCore

/// How a member's value is read, with its bounds, and how it is written.
package struct MemberRule<Value>: Sendable {
    package let read: @Sendable (JSONValue, String) throws(SigningProtocolError) -> Value
    let json: @Sendable (Value) -> JSONValue

    /// A rule. The second argument of `read` is where the value stands, for errors.
    package init(
        json: @escaping @Sendable (Value) -> JSONValue,
        _ read: @escaping @Sendable (JSONValue, String) throws(SigningProtocolError) -> Value
    ) { (self.read, self.json) = (read, json) }
}

extension MemberRule where Value: MemberValue {
    /// The rule of the value's type.
    static var own: Self {
        Self(json: { $0.json }) { json, place throws(SigningProtocolError) in
            try Value(json, at: place)
        }
    }
}

extension MemberRule<Int> {
    /// An integer within bounds.
    package static func integer(_ bounds: ClosedRange<Int>) -> Self {
        Self(json: { .integer($0) }) { json, place throws(SigningProtocolError) in
            guard case .number(let number) = json, let value = StrictJSON.integer(number), bounds.contains(value) else {
                throw .invalid(place, "is not an integer from \(bounds.lowerBound) to \(bounds.upperBound)")
            }
            return value
        }
    }
}

extension MemberRule<String> {
    /// A text of so many bytes of printable ASCII that `isValid` takes; `why` says what is wrong with others.
    package static func ascii(
        _ count: ClosedRange<Int>, else why: String = "",
        _ isValid: @escaping @Sendable (String) -> Bool = { _ in true }
    ) -> Self {
        Self(json: { .string($0) }) { json, place throws(SigningProtocolError) in
            guard let text = json.string, count.contains(text.utf8.count),
                text.allBytes(satisfy: { $0.isASCIIPrintable })
            else {
                throw .invalid(
                    place, "is not a text of \(count.lowerBound) to \(count.upperBound) printable ASCII characters")
            }
            guard isValid(text) else { throw .invalid(place, why) }
            return text
        }
    }

    /// A text that may be shown, of so many Unicode scalars.
    package static func shown(_ count: ClosedRange<Int>) -> Self {
        Self(json: { .string($0) }) { json, place throws(SigningProtocolError) in
            guard let text = json.string else { throw .invalid(place, "is not a text") }
            try ShownText.check(text, count, at: place)
            return text
        }
    }

    /// Another message in its compact form, of at most so many characters; only its characters are looked at.
    package static func compact(limit: Int) -> Self {
        Self(json: { .string($0) }) { json, place throws(SigningProtocolError) in
            guard let text = json.string, (1...limit).contains(text.utf8.count),
                text.allBytes(satisfy: { $0.isCompact })
            else { throw .invalid(place, "is not a compact message of at most \(limit) characters") }
            return text
        }
    }

    /// Another message in its compact form; only its characters are looked at.
    package static var compact: Self { compact(limit: MessageType.maximumLength) }

    /// A name of 1 to 32 of `a`–`z`, `0`–`9` and `-`.
    package static var label: Self {
        ascii(1...32, else: "has characters other than a–z, 0–9 and -", SigningLabel.isValid)
    }

    /// An issuer's name: an `https` URL without query, fragment and trailing slash.
    package static var issuer: Self { ascii(9...512, else: "is not an issuer's name", IssuerName.isValid) }

    /// A nonce of the server: 1 to 64 visible ASCII characters.
    package static var nonce: Self {
        ascii(1...64, else: "is not a nonce") { $0.utf8.allSatisfy(\.isASCIIVisible) }
    }

    /// A UUID in lower case.
    package static var uuid: Self {
        ascii(36...36, else: "is not a UUID") { text in
            zip(0..., text.utf8).allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index)
                    ? byte == 0x2D : byte.hexDigitValue != nil && byte == byte.asciiLowercased
            }
        }
    }

    /// A BCP 47 tag of at most 35 characters.
    package static var locale: Self {
        ascii(2...35, else: "is not a language tag") { $0.utf8.allSatisfy { $0.isASCIIAlphanumeric || $0 == 0x2D } }
    }
}

extension MemberRule<[UInt8]> {
    /// Base64url of so many bytes.
    package static func bytes(_ count: Int) -> Self {
        Self(json: { .string(Base64URL.encode($0)) }) { json, place throws(SigningProtocolError) in
            guard let text = json.string, text.utf8.count <= count * 2, let bytes = Base64URL.decode(text),
                bytes.count == count
            else { throw .invalid(place, "is not base64url of \(count) bytes") }
            return bytes
        }
    }

    /// Base64url of at most so many KiB.
    package static func bytes(kibibytes limit: Int) -> Self {
        Self(json: { .string(Base64URL.encode($0)) }) { json, place throws(SigningProtocolError) in
            guard let text = json.string, text.utf8.count <= (limit << 10) * 4 / 3, let bytes = Base64URL.decode(text)
            else { throw .invalid(place, "is not base64url of at most \(limit) KiB") }
            return bytes
        }
    }
}

extension MemberRule<Secret> {
    /// Base64url of so many bytes.
    package static func secret(bytes count: Int) -> Self {
        let rule = MemberRule<[UInt8]>.bytes(count)
        return Self(json: { rule.json($0.revealBytes()) }) { json, place throws(SigningProtocolError) in
            Secret(bytes: try rule.read(json, place))
        }
    }

    /// A text of so many bytes of printable ASCII.
    package static func secret(ascii count: ClosedRange<Int>) -> Self {
        let rule = MemberRule<String>.ascii(count)
        return Self(json: { rule.json($0.reveal()) }) { json, place throws(SigningProtocolError) in
            Secret(try rule.read(json, place))
        }
    }
}

extension MemberRule {
    private static func array<Element>(
        _ count: ClosedRange<Int>, of rule: MemberRule<Element>
    ) -> Self where Value == [Element] {
        Self(json: { .array($0.map(rule.json)) }) { json, place throws(SigningProtocolError) in
            var values: [Element] = []
            for (index, element) in try elements(json, count, at: place).enumerated() {
                values.append(try rule.read(element, "\(place)[\(index)]"))
            }
            return values
        }
    }

    private static func distinct<Element: MemberValue & Equatable>(
        _ count: ClosedRange<Int>, else why: String
    ) -> Self where Value == [Element] {
        Self(json: { .array($0.map(\.json)) }) { json, place throws(SigningProtocolError) in
            var values: [Element] = []
            for element in try elements(json, count, at: place) {
                guard let value = try? Element(element, at: place), !values.contains(value) else {
                    throw .invalid(place, why)
                }
                values.append(value)
            }
            return values
        }
    }

    /// The elements of an array of so many.
    static func elements(
        _ json: JSONValue, _ count: ClosedRange<Int>, at place: String
    ) throws(SigningProtocolError) -> [JSONValue] {
        guard let elements = json.array, count.contains(elements.count) else {
            throw .invalid(place, "is not an array of \(count.lowerBound) to \(count.upperBound) elements")
        }
        return elements
    }

    /// Parts.
    package static func objects<Part: MessagePart>(_ count: ClosedRange<Int>) -> Self where Value == [Part] {
        array(count, of: .own)
    }

    /// Different values out of a fixed list.
    package static func choices<Choice: RawRepresentable<String> & MemberValue & Equatable>(
        _ count: ClosedRange<Int>
    ) -> Self where Value == [Choice] { distinct(count, else: "has a value that is not known, or one twice") }
}

extension MemberRule<[String]> {
    /// Compact messages.
    package static func compacts(_ count: ClosedRange<Int>) -> Self { array(count, of: .compact) }
}

extension MemberRule<[KeyThumbprint]> {
    /// Different thumbprints.
    package static func thumbprints(_ count: ClosedRange<Int>) -> Self {
        distinct(count, else: "has a value that is not a thumbprint, or one twice")
    }
}

extension MemberRule<[SigningID]> {
    /// Different ids.
    package static func ids(_ count: ClosedRange<Int>) -> Self {
        distinct(count, else: "has a value that is not an id, or one twice")
    }
}

extension MemberRule<[ProtocolKey]> {
    /// Different P-256 keys.
    package static func keys(_ count: ClosedRange<Int>) -> Self {
        let rule = array(count, of: .own)
        return Self(json: { rule.json($0) }) { json, place throws(SigningProtocolError) in
            let keys = try rule.read(json, place)
            guard Set(keys).count == keys.count else { throw .invalid(place, "has a key twice") }
            return keys
        }
    }
}

extension MemberRule<[String: String]> {
    /// Texts that may be shown, by their names: at most `limit` texts, each with as many Unicode scalars as `count`
    /// allows. On the wire they stand in `order`, or else in the order of the alphabet.
    package static func shownTexts(
        limit: Int, names: @escaping @Sendable (String) -> Bool, count: ClosedRange<Int>, order: [String]? = nil
    ) -> Self {
        let json: @Sendable ([String: String]) -> JSONValue = { texts in
            let names = order ?? texts.keys.sorted()
            return .object(
                JSONObject(names.compactMap { name in texts[name].map { .init(name: name, value: .string($0)) } }))
        }
        return Self(json: json) { json, place throws(SigningProtocolError) in
            guard let object = json.object, object.members.count <= limit else {
                throw .invalid(place, "is not an object of at most \(limit) texts")
            }
            var texts: [String: String] = [:]
            for member in object.members {
                guard names(member.name) else { throw .invalid(place, "has a name that is not known") }
                guard let text = member.value.string else { throw .invalid(place, "has a value that is not a text") }
                try ShownText.check(text, count, at: "\(place).\(member.name)")
                texts[member.name] = text
            }
            return texts
        }
    }
}
