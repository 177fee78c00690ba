public import AssentCore
package import HTTPTypes

/// The server whose policies a service enforces, and the realm of its users.
public struct PolicyServer: Sendable, Hashable {
    /// The base URL with its path, for example `https://am.example.com/am`, without a slash at the end.
    public let url: String

    /// The realm, with a slash in front, for example `/alpha`.
    public let realm: String

    /// The name of the session cookie, which is also the name of the field that carries a session.
    public let sessionCookieName: String

    /// The same as a field's name.
    package let sessionField: HTTPField.Name

    private let path: String

    /// A server.
    ///
    /// - Parameters:
    ///   - url: its base URL.
    ///   - realm: the realm, for example `/alpha` or `alpha/customers`; `/` is the root realm.
    ///   - sessionCookieName: AM's usual name, unless the server has another one.
    /// - Throws: ``EnforcementError`` `invalidConfiguration`.
    public init(
        _ url: String, realm: String, sessionCookieName: String = WireName.sessionCookie
    ) throws(EnforcementError) {
        do throws(WireError) {
            _ = try Origin(url)
        } catch {
            throw EnforcementError(.invalidConfiguration, "The server's URL cannot be used: \(error.detail).")
        }
        guard !url.utf8.contains(where: { "?#".utf8.contains($0) }) else {
            throw EnforcementError(.invalidConfiguration, "The server's URL has a query or a fragment.")
        }
        let names = realm.split(separator: "/").map(String.init)
        // What a challenge names must be readable by every client's parser.
        guard names.allSatisfy({ $0 != "." && $0 != ".." && $0.utf8.allSatisfy(Self.isRealmByte) }) else {
            throw EnforcementError(.invalidConfiguration, "The realm has a name that cannot be used.")
        }
        guard let field = HTTPField.Name(sessionCookieName) else {
            throw EnforcementError(
                .invalidConfiguration, "The name of the session cookie cannot be the name of a header field.")
        }
        self.url = url.hasSuffix("/") ? String(url.dropLast()) : url
        self.realm = "/" + names.joined(separator: "/")
        self.sessionCookieName = sessionCookieName
        sessionField = field
        path = names.reduce("realms/root") { $0 + "/realms/" + PercentEncoding.encode($1) }
    }

    /// A URL below `/json` of the realm.
    func json(_ target: String) -> String { "\(url)/json/\(path)/\(target)" }

    /// A URL below `/enforcement` of the realm, for gateways elsewhere.
    func enforcement(_ target: String) -> String { "\(url)/enforcement/\(path)/\(target)" }

    /// The token endpoint of the realm's provider (RFC 6749 §3.2).
    package var tokenEndpoint: String { "\(issuer)/access_token" }

    /// The realm's provider.
    package var issuer: String { "\(url)/oauth2/\(path)" }

    private static func isRealmByte(_ byte: UInt8) -> Bool {
        byte.isASCIIPrintable && !",\"\\".utf8.contains(byte)
    }
}

extension HTTPLimits {
    /// Bounds of an exchange with a policy server, unless others are given: 5 seconds to connect, 10 of silence, 15 in
    /// all, and 256 KiB.
    public static let policyServer = HTTPLimits(
        connect: .seconds(5), read: .seconds(10), total: .seconds(15), replyBytes: 256 << 10)
}
