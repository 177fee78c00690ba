import AssentCore
import AssentEngine

/// Where a browser may be sent after a sign-in: a place of this server's own, never one that only a link names.
struct ReturnTarget: Hashable {
    /// The URL, as it was asked for.
    let url: String

    /// What it is.
    let kind: Kind

    enum Kind: Hashable {
        /// The authorization endpoint of the realm, with a client that waits for an answer.
        case authorization(client: String?, redirectURI: String?)
        /// A protected resource behind the gateway.
        case resource
    }

    /// The target that `goto` names, or `nil` when it is nothing that this server leads to.
    ///
    /// It is compared as it is, so that no two readers of a URL can differ: the realm's authorization endpoint byte for
    /// byte with a query behind it, or a URL whose origin is exactly the gateway's.
    init?(_ goto: String, grants: OAuthProvider, gateway: Origin?) {
        guard goto.utf8.count <= 8192, goto.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            goto.utf8.allSatisfy({ ![UInt8(ascii: "\\"), UInt8(ascii: "#"), UInt8(ascii: "\"")].contains($0) })
        else { return nil }
        if goto.hasPrefix("\(grants.configuration.endpointBase)/authorize?") {
            let query = (try? FormEncoding.parse(URLText.query(of: goto)?.text ?? "")) ?? FormItems()
            let client = query["client_id"].flatMap { grants.configuration.definition(of: $0) }
            let uri = query["redirect_uri"].flatMap { client?.allowsRedirect(to: $0) == true ? $0 : nil }
            url = goto
            kind = .authorization(client: client.map { $0.name ?? $0.id }, redirectURI: uri)
        } else if let gateway, (try? Origin(goto)) == gateway {
            url = goto
            kind = .resource
        } else {
            return nil
        }
    }

    /// Where it is, as users know it.
    var origin: String { (try? Origin(url))?.description ?? "" }

    /// The client that waits, as users know it, when its request names one that is known.
    var client: String? {
        if case .authorization(let client, _) = kind { client } else { nil }
    }

    /// Where an app is told that the user gives up; `nil` when nobody waits to be told.
    func cancelled(_ grants: OAuthProvider) async -> String? {
        guard case .authorization(_, .some) = kind,
            let parameters = try? OAuthParameters(urlEncoded: Array((URLText.query(of: url)?.text ?? "").utf8))
        else { return nil }
        return try? await AuthorizationEndpoint(grants).cancel(parameters).location
    }

    /// Whether ``cancelled(_:)`` leads somewhere.
    var canBeCancelled: Bool { if case .authorization(_, .some) = kind { true } else { false } }

    /// What a form's Content Security Policy must allow so that redirects may lead there; `nil` when a policy cannot
    /// say it (an IPv6 address) or nobody knows where redirects will lead.
    var formTargets: [String]? {
        guard case .authorization(_, let uri?) = kind else { return nil }
        return Self.formTargets(redirectURI: uri)
    }

    /// The same for a client's redirect URI.
    static func formTargets(redirectURI uri: String) -> [String]? {
        if let origin = try? Origin(uri) {
            return origin.host.kind == .ipv6 ? nil : [origin.description]
        }
        // An app's own scheme. Its characters were checked when it was registered.
        return [uri.prefix { $0 != ":" } + ":"].map(String.init)
    }
}
