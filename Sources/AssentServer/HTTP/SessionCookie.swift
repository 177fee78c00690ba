import AssentCore
import HTTPTypes

/// How the session token travels: in a cookie, or in a header field of the cookie's name, as AM's mobile SDKs send it.
struct SessionCookie: Sendable, Hashable {
    /// The cookie's and the header field's name; AM's default is `iPlanetDirectoryPro`.
    let name: String

    /// The name as a field's name; `nil` when it can be none.
    let fieldName: HTTPField.Name?

    /// The longest token that is looked up.
    static let maxLength = 4096

    init(name: String) {
        self.name = name
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
        var found: Substring?
        for field in fields[values: .cookie] {
            for pair in field.split(separator: ";") {
                let parts = pair.drop { $0 == " " }.split(
                    separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2, parts[0] == name else { continue }
                if let found, found != parts[1] { return nil }
                found = parts[1]
            }
        }
        return found.flatMap { accepted(String($0)) }
    }

    /// The token, the header field first: a client that sends both means the field.
    func token(_ fields: HTTPFields) -> Secret? {
        headerToken(fields) ?? cookieToken(fields)
    }

    /// The `Set-Cookie` value that hands a token to the browser until it ends the session.
    func setting(_ token: Secret) -> String {
        "\(name)=\(token.reveal()); Path=/; Secure; HttpOnly; SameSite=Lax"
    }

    /// The `Set-Cookie` value that removes the cookie. `Expires` is there because AM's iOS SDK looks for it.
    var clearing: String {
        "\(name)=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Secure; HttpOnly; SameSite=Lax"
    }

    /// A `Cookie` field's value without the session cookie: what may be forwarded to a protected service.
    func removed(from cookieField: String) -> String? {
        let kept = cookieField.split(separator: ";").filter { !isNamed(by: $0) }
        return kept.isEmpty ? nil : kept.joined(separator: ";").trimmingPrefix { $0 == " " }.description
    }

    /// Whether a `name=value` pair is the session cookie to anybody who reads it: white space around the name does not count
    /// (RFC 6265 §5.2).
    func isNamed(by pair: Substring) -> Bool {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        return pair.prefix { $0 != "=" }.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
            .elementsEqual(name)
    }

    private func accepted(_ value: String) -> Secret? {
        guard !value.isEmpty, value.utf8.count <= Self.maxLength else { return nil }
        return Secret(value)
    }
}
