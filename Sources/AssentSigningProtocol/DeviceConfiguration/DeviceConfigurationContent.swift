package import AssentCore

/// What a server tells one version of an app that it may do (`docs/device-configuration.md`, "Members"). Times are
/// seconds since 1970.
package struct DeviceConfigurationContent: ShapedPart, Hashable {
    /// `app/platform/environment`, as in the app's trust file.
    package let audience: String
    /// The version of the app that it is for.
    package let appVersion: String
    /// Grows with each change; an older one is never taken back.
    package let version: Int
    package let issuedAt: Int
    /// Until when it may be handed on as what the server says now.
    package let expires: Int
    package let status: ServedStatus
    /// The oldest version of the app that is still to be used; `nil` when there is none.
    package let minimumVersion: DottedVersion?
    /// Whether calls are sealed where the trust file leaves it to the server.
    package let payloadEncryption: ServedSwitch
    /// Whether users may be let in who are only remembered.
    package let implicit: Bool
    /// Whether sign-ins may leave nothing behind.
    package let stateless: Bool
    /// Where the app may lead a browser that it signs in.
    package let webLinks: [String]
    /// What a new PIN must be like, for the screen that asks for one; `nil` where no PIN signs a user in.
    package let pin: PasswordRules?

    /// The media type in the header.
    package static let type = "assent-device-config+jwt"

    /// The most bytes that a signed one may have.
    package static let limit = 64 << 10

    /// For how many seconds one is handed on.
    package static let lifetime = 300

    package init(
        audience: String, appVersion: String, version: Int, issuedAt: Int, expires: Int, status: ServedStatus,
        minimumVersion: DottedVersion?, payloadEncryption: ServedSwitch, implicit: Bool, stateless: Bool,
        webLinks: [String], pin: PasswordRules? = nil
    ) {
        (self.audience, self.appVersion, self.version) = (audience, appVersion, version)
        (self.issuedAt, self.expires, self.status) = (issuedAt, expires, status)
        (self.minimumVersion, self.payloadEncryption) = (minimumVersion, payloadEncryption)
        (self.implicit, self.stateless, self.webLinks, self.pin) = (implicit, stateless, webLinks, pin)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("aud", \.audience, .appAudience)
        Member("app_version", \.appVersion, .appVersion)
        Member("version", \.version, .integer(1...StrictJSON.maximumInteger))
        Member("iat", \.issuedAt)
        Member("exp", \.expires)
        Member("status", \.status)
        Member(optional: "minimumVersion", \.minimumVersion)
        Member("payloadEncryption", \.payloadEncryption)
        Member("implicit", \.implicit)
        Member("stateless", \.stateless)
        Member("webLinks", \.webLinks, .webLinkTargets)
        Member(optional: "pin", \.pin)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard expires > issuedAt, expires - issuedAt <= Self.lifetime else {
            throw .invalid(reader.path("exp"), "is not 1 to \(Self.lifetime) seconds after iat")
        }
    }
}

/// What a version of an app may do.
package enum ServedStatus: String, MemberValue, Hashable, CaseIterable {
    /// Everything.
    case enabled
    /// All but register.
    case loginOnly
    /// Nothing.
    case disabled
}

/// Something that is on or off.
package enum ServedSwitch: String, MemberValue, Hashable, CaseIterable { case on, off }

/// A version of 1 to 8 numbers with dots, as in `3.2.0`, which can be compared. Numbers that are missing at the end are
/// zero when two are compared.
package struct DottedVersion: MemberValue, Hashable, Comparable {
    package let text: String
    private let numbers: [Int]

    /// A version; `nil` for a text of another form.
    package init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard text.utf8.count <= 64, (1...8).contains(parts.count) else { return nil }
        var numbers: [Int] = []
        for part in parts {
            let isNumber = part.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            guard (1...9).contains(part.count), isNumber, let number = Int(String(decoding: part, as: UTF8.self))
            else { return nil }
            numbers.append(number)
        }
        while numbers.count > 1, numbers.last == 0 { numbers.removeLast() }
        (self.text, self.numbers) = (text, numbers)
    }

    package init(_ json: JSONValue, at place: String) throws(SigningProtocolError) {
        guard let version = json.string.flatMap({ Self($0) }) else {
            throw .invalid(place, "is not a version of 1 to 8 numbers with dots")
        }
        self = version
    }

    package var json: JSONValue { .string(text) }

    package static func == (left: Self, right: Self) -> Bool { left.numbers == right.numbers }

    package func hash(into hasher: inout Hasher) { hasher.combine(numbers) }

    package static func < (left: Self, right: Self) -> Bool { left.numbers.lexicographicallyPrecedes(right.numbers) }
}

extension MemberRule<String> {
    /// An app, a platform and an environment, each 1 to 64 of letters, digits, `.`, `_` and `-`.
    package static var appAudience: Self {
        ascii(5...194, else: "is not app/platform/environment") { text in
            let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            return parts.count == 3 && parts.allSatisfy { AudiencePart.isValid(String(decoding: $0, as: UTF8.self)) }
        }
    }

    /// The name of an app's version: 1 to 64 visible ASCII characters.
    package static var appVersion: Self {
        ascii(1...64, else: "is not a version of 1 to 64 visible ASCII characters") { !$0.utf8.contains(0x20) }
    }
}

extension MemberRule<[String]> {
    /// At most 32 different texts; whether each is an address, who follows it looks.
    fileprivate static var webLinkTargets: Self {
        Self(json: { .array($0.map(JSONValue.string)) }) { json, place throws(SigningProtocolError) in
            guard let links = json.strings, links.count <= 32, Set(links).count == links.count,
                links.allSatisfy({ (1...2048).contains($0.utf8.count) && $0.utf8.allSatisfy(\.isASCIIPrintable) })
            else { throw .invalid(place, "is not a list of at most 32 different addresses") }
            return links
        }
    }
}

/// A part of an audience.
package enum AudiencePart {
    /// Whether a text has 1 to 64 letters, digits, `.`, `_` and `-`.
    package static func isValid(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isASCIIAlphanumeric || "._-".utf8.contains($0) }
    }
}
