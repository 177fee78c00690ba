import AssentCore

extension MemberRule<Int> {
    /// An integer within bounds.
    package static func integer(_ bounds: ClosedRange<Int>) -> Self {
        Self({ reader, name throws(SigningProtocolError) in try reader.integer(name, bounds) }, { .integer($0) })
    }
}

extension MemberRule<String> {
    private static func text(
        _ take: @escaping @Sendable (inout MemberReader, String) throws(SigningProtocolError) -> String
    ) -> Self { Self(take, { .string($0) }) }

    /// ``MemberReader/ascii(_:_:)``.
    package static func ascii(_ count: ClosedRange<Int>) -> Self {
        text { reader, name throws(SigningProtocolError) in try reader.ascii(name, count) }
    }

    /// ``MemberReader/shown(_:_:)``.
    package static func shown(_ count: ClosedRange<Int>) -> Self {
        text { reader, name throws(SigningProtocolError) in try reader.shown(name, count) }
    }

    /// ``MemberReader/compact(_:limit:)``.
    package static func compact(limit: Int) -> Self {
        text { reader, name throws(SigningProtocolError) in try reader.compact(name, limit: limit) }
    }

    /// ``MemberReader/compact(_:limit:)``, of any length that a message may have.
    package static var compact: Self { compact(limit: MessageType.maximumLength) }

    /// ``MemberReader/label(_:)``.
    package static var label: Self {
        text { reader, name throws(SigningProtocolError) in try reader.label(name) }
    }

    /// ``MemberReader/issuer(_:)``.
    package static var issuer: Self {
        text { reader, name throws(SigningProtocolError) in try reader.issuer(name) }
    }

    /// ``MemberReader/uuid(_:)``.
    package static var uuid: Self {
        text { reader, name throws(SigningProtocolError) in try reader.uuid(name) }
    }

    /// ``MemberReader/locale(_:)``.
    package static var locale: Self {
        text { reader, name throws(SigningProtocolError) in try reader.locale(name) }
    }

    /// ``MemberReader/nonce(_:)``.
    package static var nonce: Self {
        text { reader, name throws(SigningProtocolError) in try reader.nonce(name) }
    }
}

extension MemberRule<[UInt8]> {
    /// ``MemberReader/bytes(_:count:)``.
    package static func bytes(_ count: Int) -> Self {
        Self(
            { reader, name throws(SigningProtocolError) in try reader.bytes(name, count: count) },
            { .string(Base64URL.encode($0)) })
    }

    /// ``MemberReader/bytes(_:limit:)``; the limit is in KiB.
    package static func bytes(limit: Int) -> Self {
        Self(
            { reader, name throws(SigningProtocolError) in try reader.bytes(name, limit: limit) },
            { .string(Base64URL.encode($0)) })
    }
}

extension MemberRule<Secret> {
    /// ``MemberReader/bytes(_:count:)``.
    package static func bytes(_ count: Int) -> Self {
        Self(
            { reader, name throws(SigningProtocolError) in Secret(bytes: try reader.bytes(name, count: count)) },
            { .string(Base64URL.encode($0.revealBytes())) })
    }

    /// ``MemberReader/ascii(_:_:)``.
    package static func ascii(_ count: ClosedRange<Int>) -> Self {
        Self(
            { reader, name throws(SigningProtocolError) in Secret(try reader.ascii(name, count)) },
            { .string($0.reveal()) })
    }
}

extension MemberRule {
    private static func array<Element>(
        _ json: @escaping @Sendable (Element) -> JSONValue,
        _ take: @escaping @Sendable (inout MemberReader, String) throws(SigningProtocolError) -> [Element]
    ) -> Self where Value == [Element] { Self(take, { .array($0.map(json)) }) }

    /// ``MemberReader/objects(_:_:)``.
    package static func objects<Part: MessagePart>(_ count: ClosedRange<Int>) -> Self where Value == [Part] {
        array(\.json) { reader, name throws(SigningProtocolError) in try reader.objects(name, count) }
    }

    /// ``MemberReader/choices(_:_:)``.
    package static func choices<Choice: RawRepresentable<String> & MemberValue & Hashable>(
        _ count: ClosedRange<Int>
    ) -> Self where Value == [Choice] {
        array(\.json) { reader, name throws(SigningProtocolError) in try reader.choices(name, count) }
    }
}

extension MemberRule<[String]> {
    /// ``MemberReader/compacts(_:_:limit:)``.
    package static func compacts(_ count: ClosedRange<Int>) -> Self {
        array(JSONValue.string) { reader, name throws(SigningProtocolError) in try reader.compacts(name, count) }
    }
}

extension MemberRule<[KeyThumbprint]> {
    /// ``MemberReader/thumbprints(_:_:)``.
    package static func thumbprints(_ count: ClosedRange<Int>) -> Self {
        array(\.json) { reader, name throws(SigningProtocolError) in try reader.thumbprints(name, count) }
    }
}

extension MemberRule<[SigningID]> {
    /// ``MemberReader/ids(_:_:)``.
    package static func ids(_ count: ClosedRange<Int>) -> Self {
        array(\.json) { reader, name throws(SigningProtocolError) in try reader.ids(name, count) }
    }
}

extension MemberRule<[ProtocolKey]> {
    /// ``MemberReader/keys(_:_:)``.
    package static func keys(_ count: ClosedRange<Int>) -> Self {
        array(\.json) { reader, name throws(SigningProtocolError) in try reader.keys(name, count) }
    }
}

extension MemberRule<[String: String]> {
    /// ``MemberReader/shownTexts(_:limit:names:count:)``; `order` is that of the names on the wire, by default the
    /// alphabet's.
    package static func shownTexts(
        limit: Int, names: @escaping @Sendable (String) -> Bool, count: ClosedRange<Int>, order: [String]? = nil
    ) -> Self {
        Self(
            { reader, name throws(SigningProtocolError) in
                try reader.shownTexts(name, limit: limit, names: names, count: count)
            },
            { texts in
                let names = order ?? texts.keys.sorted()
                return .object(
                    JSONObject(names.compactMap { name in texts[name].map { .init(name: name, value: .string($0)) } }))
            })
    }
}
