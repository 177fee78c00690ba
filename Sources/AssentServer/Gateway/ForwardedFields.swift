import AssentCore
import HTTPTypes

/// Which header fields go to the protected service, and which come back.
///
/// What proves who the caller is stays at the gateway, and what a service might believe about the caller comes from the
/// gateway alone.
enum ForwardedFields {
    /// The user's name for the service, set by the gateway.
    static let remoteUser = HTTPField.Name("X-Remote-User")!

    /// Fields of one hop (RFC 9110 §7.6.1) and those that say how the message is framed.
    private static let hopByHop: Set<String> = [
        "connection", "keep-alive", "http2-settings", "proxy-authenticate", "proxy-authorization", "proxy-connection",
        "te", "trailer",
        "transfer-encoding", "upgrade", "content-length", "host", "expect",
    ]

    /// Fields by which a client could be believed to be somebody else, to call another method or another URL.
    private static let claims: Set<String> = [
        "x-user", "x-email", "x-host", "x-scheme", "x-url-scheme", "x-forwarded", "x-txid", "x-idtoken",
        "x-authenticate-response", "forwarded",
    ]

    /// What the names begin with by which proxies, gateways and sign-in services in front of applications tell them who
    /// calls: by the first letter, since most fields have another one.
    private static let claimFamilies = Dictionary(
        grouping: [
            "x-forwarded-", "x-original-", "x-rewrite-", "x-remote-", "x-real-", "x-auth-request-", "x-authenticated-",
            "x-authentik-", "x-webauth-", "x-user-", "x-userinfo", "x-username", "x-userid", "x-groups", "x-roles",
            "x-ssl-", "x-tls-", "x-client-", "x-cluster-client-", "x-arr-", "x-ms-client-principal", "x-amzn-oidc-",
            "x-goog-authenticated-", "x-goog-iap-", "x-endpoint-api-", "x-apigateway-", "x-consumer-", "x-credential-",
            "x-anonymous-", "x-pomerium-", "x-vouch-", "x-envoy-", "x-proxyuser-", "x-method-", "x-http-method",
            "remote-", "client-cert", "client-ip", "cf-access-", "cf-connecting-", "true-client-", "tailscale-",
            "ssl-", "iv-", "oidc-", "front-end-",
        ], by: { $0.utf8.first ?? 0 })

    private static func isClaim(_ name: String) -> Bool {
        guard let first = name.utf8.first, let families = claimFamilies[first] else { return false }
        return families.contains { name.utf8.starts(with: $0.utf8) }
    }

    private static let forwardedProto = HTTPField.Name("X-Forwarded-Proto")!
    private static let forwardedHost = HTTPField.Name("X-Forwarded-Host")!

    /// What no client may send on to a service.
    private static let stripped = hopByHop.union(claims)

    /// The fields of a request as the service gets them.
    static func request(
        _ fields: HTTPFields, cookie: SessionCookie, keepsAuthorization: Bool, user: String?,
        idempotencyKey key: String?, strips own: Set<String> = [],
        publicOrigin: Origin
    ) -> HTTPFields {
        let named = connectionNamed(fields)
        var forwarded = HTTPFields()
        for field in fields {
            let name = field.name.canonicalName
            // What the body is belongs to the body: without it the service would guess.
            if field.name == .contentType {
                forwarded.append(field)
                continue
            }
            if stripped.contains(name) || isClaim(name) || own.contains(name) { continue }
            if !named.isEmpty && named.contains(name) { continue }
            // `X_Remote_User` and `X-Remote-User` are one variable to a CGI-style service.
            if name.utf8.contains(UInt8(ascii: "_")) || field.name == cookie.fieldName { continue }
            if field.name == .authorization, !keepsAuthorization { continue }
            if key != nil, field.name == .idempotencyKey { continue }
            if field.name == .cookie {
                if let kept = cookie.removed(from: field.value) { forwarded.append(.init(name: .cookie, value: kept)) }
                continue
            }
            forwarded.append(field)
        }
        if let user { forwarded[remoteUser] = user }
        if let key { forwarded[.idempotencyKey] = key }
        forwarded[forwardedProto] = publicOrigin.scheme
        forwarded[forwardedHost] = publicOrigin.authority
        return forwarded
    }

    /// The fields of the service's reply as the client gets them. A service may not set the session cookie.
    static func reply(_ fields: HTTPFields, cookie: SessionCookie) -> HTTPFields {
        let named = connectionNamed(fields)
        var forwarded = HTTPFields()
        for field in fields {
            let name = field.name.canonicalName
            if !named.isEmpty && named.contains(name) { continue }
            if hopByHop.contains(name) && name != "content-length" { continue }
            if field.name == .setCookie, !cookie.mayBeSet(by: field.value) { continue }
            forwarded.append(field)
        }
        return forwarded
    }

    private static func connectionNamed(_ fields: HTTPFields) -> Set<String> {
        guard fields.contains(.connection) else { return [] }
        return Set(
            fields[values: .connection].flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }.map { option in
                let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
                return Substring(option.drop(while: isBlank).prefix { !isBlank($0) }).lowercased()
            })
    }
}
