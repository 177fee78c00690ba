import AssentCore
import HTTPTypes

/// One of a browser's sign-ins, and where it stands: its name is in the page's address, the rest in a cookie. So a page
/// can be loaded again, by the browser alone that began it: anyone who else has the address begins anew.
struct SignInRun: Hashable {
    /// Which of the browser's sign-ins it is.
    let id: String

    /// Where a sign-in stands.
    enum State: Hashable {
        /// A page waits, with what is to be said above it, and the name that was typed before.
        case page(authID: String, notice: SignInNotice?, name: String? = nil)
        /// The user is signed in.
        case done
    }

    /// How the names of the cookies begin. `__Host-` keeps hosts of the same site from setting one (RFC 6265bis
    /// §4.1.3.2).
    static let cookiePrefix = "__Host-assent-page-"

    /// Sign-ins that a browser may have begun at once; with more, the cookies would fill its requests.
    private static let limit = 4

    /// Bytes of a name that is kept: those of the longest user name.
    private static let nameLimit = 100

    /// Seconds after which nobody comes back. Journeys expire by themselves.
    private static let maxAge = 3600

    /// A sign-in that begins.
    init(_ random: any RandomSource) { id = random.token(byteCount: 9) }

    /// The one that an address names; `nil` for what cannot be a name of ours.
    init?(named text: String) {
        guard (1...32).contains(text.utf8.count), text.utf8.allSatisfy(Self.isNameByte) else { return nil }
        id = text
    }

    /// Where it stands in the browser that sends these fields; `nil` in any other.
    func state(in fields: HTTPFields) -> State? {
        guard let value = Self.cookies(fields).first(where: { $0.id == id })?.value else { return nil }
        let parts = value.split(separator: "~", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return value == "done" ? .done : nil }
        let name = Base64URL.decode(parts[1]).flatMap { String(validating: $0, as: UTF8.self) } ?? ""
        return .page(
            authID: String(parts[2]), notice: SignInNotice(rawValue: String(parts[0])), name: name.isEmpty ? nil : name)
    }

    /// The `Set-Cookie` values that note where it stands; with `nil`, that it is over. They also take away what the
    /// browser has too much of.
    func setting(_ state: State?, in fields: HTTPFields) -> [String] {
        let others = Self.cookies(fields).map(\.id).filter { $0 != id }
        let stale = others.dropLast(Self.limit - 1).map { Self.cookie($0, "", maxAge: 0) }
        switch state {
        case .page(let authID, let notice, let name):
            let kept = Array((name ?? "").utf8)
            let encoded = kept.count <= Self.nameLimit ? Base64URL.encode(kept) : ""
            let value = "\(notice?.rawValue ?? "")~\(encoded)~\(authID)"
            return stale + [Self.cookie(id, value, maxAge: Self.maxAge)]
        case .done: return stale + [Self.cookie(id, "done", maxAge: Self.maxAge)]
        case nil: return stale + (self.state(in: fields) == nil ? [] : [Self.cookie(id, "", maxAge: 0)])
        }
    }

    private static func cookie(_ id: String, _ value: String, maxAge: Int) -> String {
        "\(cookiePrefix)\(id)=\(value); Path=/; Max-Age=\(maxAge); Secure; HttpOnly; SameSite=Lax"
    }

    /// By bytes, as browsers put them together: a Greek question mark is the same character as `;` to Swift, and with
    /// one in its value a cookie that another host may set would be two, the second with our prefix.
    private static func cookies(_ fields: HTTPFields) -> [(id: String, value: String)] {
        fields[values: .cookie].flatMap { $0.utf8.split(separator: UInt8(ascii: ";")) }.compactMap { pair in
            let cookie = pair.drop { $0 == UInt8(ascii: " ") }
            let name = cookie.prefix { $0 != UInt8(ascii: "=") }
            guard name.endIndex < cookie.endIndex, name.starts(with: cookiePrefix.utf8),
                let run = SignInRun(named: String(Substring(name.dropFirst(cookiePrefix.utf8.count))))
            else { return nil }
            return (run.id, String(Substring(cookie[name.endIndex...].dropFirst())))
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
