package import AssentCore
package import AssentSigningProtocol
package import AssentTokens

/// A host that the app may call.
package struct TrustedHost: ShapedPart, Hashable {
    /// `host` or `host:port`, in lower case.
    package let host: String
    package let pins: [TrustedPin]
    /// The kinds of call whose credential it gets.
    package let sends: [CallKind]

    package static let shape = MessageShape<Self>(Self.init) {
        Member("host", \.host, .trustedHost)
        Member("pins", \.pins, .objects(2...16))
        Member("sends", \.sends, .credentials)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard Set(pins.map(\.pin)).count == pins.count else {
            throw .invalid(reader.path("pins"), "has a key twice")
        }
    }

    /// The pins that are valid at a time.
    package func livePins(at now: Int) -> [Pin] { pins.filter { now < $0.notAfter }.map(\.pin) }

    /// Whether it has a port, so that it is about that port alone.
    var hasPort: Bool { (try? NormalizedHost(host)) == nil }

    /// The https origin; with the usual port where none is named.
    package var origin: Origin? { try? Origin(headerValue: "https://\(host)") }
}

/// A key that one certificate of a host's chain must have.
package struct TrustedPin: ShapedPart, Hashable {
    package let pin: Pin
    /// The first second in which it is not valid any more.
    package let notAfter: Int

    package static let shape = MessageShape<Self>(Self.init) {
        Member("spki", \.pin, .pin)
        Member("notAfter", \.notAfter)
    }
}

extension MemberRule<Pin> {
    /// Base64url of the SHA-256 of a SubjectPublicKeyInfo.
    fileprivate static var pin: Self {
        Self(json: { .string(Base64URL.encode($0.sha256)) }) { json, place throws(SigningProtocolError) in
            let bytes = try MemberRule<[UInt8]>.bytes(32).read(json, place)
            do throws(PinError) {
                return try Pin(sha256: bytes)
            } catch {
                throw .invalid(place, "is not a pin: \(error.detail)")
            }
        }
    }
}

extension MemberRule<String> {
    /// A host, with or without a port, in the one form that it has.
    fileprivate static var trustedHost: Self {
        ascii(1...260, else: "is not a host or host:port, in lower case") { text in
            if let host = try? NormalizedHost(text) { return host.description == text }
            guard let origin = try? Origin(headerValue: "https://\(text)") else { return false }
            return text == "\(origin.host):\(origin.port)"
        }
    }
}

extension MemberRule<[CallKind]> {
    /// Different kinds that have a credential.
    fileprivate static var credentials: Self {
        Self(json: { .array($0.map { .string($0.rawValue) }) }) { json, place throws(SigningProtocolError) in
            guard let names = json.strings, names.count <= CallKind.allCases.count else {
                throw .invalid(place, "is not a list of kinds of call")
            }
            let kinds = names.compactMap(CallKind.init(rawValue:)).filter { $0 != .nobody }
            guard kinds.count == names.count, Set(kinds).count == kinds.count else {
                throw .invalid(place, "has another value than user, implicit and device, or one twice")
            }
            return kinds
        }
    }
}
