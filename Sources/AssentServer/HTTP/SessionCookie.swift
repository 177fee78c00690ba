import AssentCore
import HTTPTypes

/// To which requests of other sites' pages browsers add a cookie (RFC 6265bis §5.5.7).
package enum SameSite: String, Sendable, Hashable, CaseIterable {
    /// When the user follows a link.
    case lax = "Lax"
    /// To all: only the origin of the page then tells a forged request.
    case none = "None"
}

/// How the session token travels: in a cookie, or in a header field of the cookie's name, as AM's mobile SDKs send it.
struct SessionCookie: Sendable, Hashable {
    /// The cookie's and the header field's name; AM's default is `iPlanetDirectoryPro`.
    let name: String

    /// The name as a field's name; `nil` when it can be none.
    let fieldName: HTTPField.Name?

    /// To which requests of other sites' pages browsers add it.
    let sameSite: SameSite

    /// Whether a browser keeps a cookie of its own for each site whose pages call the server (CHIPS). One that blocks
    /// what it calls third-party cookies keeps these.
    let isPartitioned: Bool

    /// The longest token that is looked up.
    static let maxLength = 4096

    init(name: String, sameSite: SameSite = .lax, isPartitioned: Bool = false) {
        self.name = name
        self.sameSite = sameSite
        self.isPartitioned = isPartitioned
        fieldName = HTTPField.Name(name)
    }

    /// Whether `name` can be a cookie's and a field's name (RFC 9110 §5.6.2).
    static func isValid(name: String) -> Bool {
        !name.isEmpty && name.count <= 64 && HTTPField.Name(name) != nil
    }

    /// The token in the header field called like the cookie.
    func headerToken(_ fields: HTTPFields) -> Secret? {
        guard let fieldName, let value = fields[fieldName] else { return nil }
        return accepted(value)
    }

    /// The token in the cookie. Two cookies of the name that differ are refused: who set the second one?
    func cookieToken(_ fields: HTTPFields) -> Secret? {
        let values = self.values(in: fields)
        guard let found = values.first, values.allSatisfy({ $0.elementsEqual(found) }) else { return nil }
        return accepted(String(decoding: found, as: UTF8.self))
    }

    /// The values of all cookies of the name.
    private func values(in fields: HTTPFields) -> [Substring.UTF8View] {
        var values: [Substring.UTF8View] = []
        for field in fields[values: .cookie] {
            for pair in field.utf8.split(separator: Self.semicolon) {
                let trimmed = pair.drop { $0 == UInt8(ascii: " ") }
                guard trimmed.starts(with: name.utf8) else { continue }
                let rest = trimmed.dropFirst(name.utf8.count)
                guard rest.first == Self.equals else { continue }
                values.append(rest.dropFirst())
            }
        }
        return values
    }

    /// The token, the header field first: a client that sends both means the field.
    func token(_ fields: HTTPFields) -> Secret? {
        headerToken(fields) ?? cookieToken(fields)
    }

    /// The `Set-Cookie` values that hand a token to the browser until it ends the session, in answer to a request with
    /// these fields.
    ///
    /// A browser keeps cookies with and without `Partitioned` apart. When the setting has changed it may have both,
    /// which would be refused for ever (``cookieToken(_:)``): the other one is removed then. Only then, and first,
    /// because clients that know nothing of `Partitioned` would take one for the other.
    func setting(_ token: Secret, answering fields: HTTPFields) -> [String] {
        let setting = "\(name)=\(token.reveal()); Path=/; \(attributes())"
        return values(in: fields).count > 1 ? [clearing(isPartitioned: !isPartitioned), setting] : [setting]
    }

    /// The `Set-Cookie` values that remove the cookie, in answer to a request with these fields.
    func clearing(answering fields: HTTPFields) -> [String] {
        let clearing = clearing(isPartitioned: isPartitioned)
        return values(in: fields).count > 1 ? [self.clearing(isPartitioned: !isPartitioned), clearing] : [clearing]
    }

    /// `Expires` is there because AM's iOS SDK looks for it.
    private func clearing(isPartitioned: Bool) -> String {
        "\(name)=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; "
            + attributes(isPartitioned: isPartitioned)
    }

    private func attributes(isPartitioned: Bool? = nil) -> String {
        "Secure; HttpOnly; SameSite=\(sameSite.rawValue)\(isPartitioned ?? self.isPartitioned ? "; Partitioned" : "")"
    }

    /// A `Cookie` field's value without the session cookie, and without what is not a cookie by RFC 6265 §4.1.1, which
    /// a service might cut in other places: what may be forwarded to a protected service.
    func removed(from cookieField: String) -> String? {
        let kept = cookieField.utf8.split(separator: Self.semicolon).filter { pair in
            pair.allSatisfy { $0 < 0x80 } && !isNamed(by: pair)
        }
        guard let first = kept.first else { return nil }
        let pairs = [first.drop { $0 == UInt8(ascii: " ") }] + kept.dropFirst()
        return String(decoding: Array(pairs.joined(separator: [Self.semicolon])), as: UTF8.self)
    }

    /// Whether a service behind the gateway may set the cookie of this `Set-Cookie`: not the session cookie, and none
    /// without a name, whose value a browser sends back as if it were name and value.
    func mayBeSet(by setCookieField: String) -> Bool {
        let pair = setCookieField.utf8.prefix { $0 != Self.semicolon }
        guard pair.allSatisfy({ $0 < 0x80 }), pair.contains(Self.equals),
            pair.first(where: { !Self.isSpace($0) }) != Self.equals
        else { return false }
        return !isNamed(by: pair)
    }

    /// Whether a `name=value` pair is the session cookie, or one of a sign-in, to anybody who reads it: white space
    /// around the name does not count (RFC 6265 §5.2), and neither does an empty name before it.
    private func isNamed(by pair: Substring.UTF8View) -> Bool {
        let read = pair.drop { Self.isSpace($0) || $0 == Self.equals }.prefix { $0 != Self.equals }
            .reversed().drop(while: Self.isSpace).reversed()
        return read.elementsEqual(name.utf8) || read.starts(with: SignInRun.cookiePrefix.utf8)
    }

    private static let semicolon = UInt8(ascii: ";")
    private static let equals = UInt8(ascii: "=")

    private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    private func accepted(_ value: String) -> Secret? {
        guard !value.isEmpty, value.utf8.count <= Self.maxLength else { return nil }
        return Secret(value)
    }
}
