import AssentCore
import HTTPTypes

/// Which header fields go to the protected service, and which come back.
///
/// What proves who the caller is stays at the gateway, and what a service might believe about the caller comes from the
/// gateway alone.
enum ForwardedFields {
    /// The user's name for the service, set by the gateway.
    static let remoteUser = HTTPField.Name("X-Remote-User")!

    /// The key by which the service recognises a repeated request (draft-ietf-httpapi-idempotency-key-header).
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")!

    /// The field that carries a transaction id back, besides `_txid`.
    static let transactionID = HTTPField.Name("X-TxID")!

    /// Fields of one hop (RFC 9110 §7.6.1) and those that say how the message is framed.
    private static let hopByHop: Set<String> = [
        "connection", "keep-alive", "http2-settings", "proxy-authenticate", "proxy-authorization", "proxy-connection",
        "te", "trailer",
        "transfer-encoding", "upgrade", "content-length", "host", "expect",
    ]

    /// Fields by which a client could be believed to be somebody else, to call another method or another URL.
    private static let claims: Set<String> = [
        "x-remote-user", "remote-user", "x-forwarded-user", "x-authenticated-user", "x-user", "x-email",
        "x-http-method", "x-http-method-override", "x-method-override", "x-original-url", "x-rewrite-url",
        "x-original-method", "x-txid", "x-authenticate-response", "forwarded", "x-forwarded-for", "x-forwarded-host",
        "x-forwarded-proto", "x-forwarded-port", "x-real-ip",
    ]

    private static let forwardedProto = HTTPField.Name("X-Forwarded-Proto")!
    private static let forwardedHost = HTTPField.Name("X-Forwarded-Host")!

    /// What no client may send on to a service.
    private static let stripped = hopByHop.union(claims)

    /// The fields of a request as the service gets them.
    static func request(
        _ fields: HTTPFields, cookie: SessionCookie, keepsAuthorization: Bool, user: String?,
        idempotencyKey key: String?,
        publicOrigin: Origin
    ) -> HTTPFields {
        let named = connectionNamed(fields)
        var forwarded = HTTPFields()
        for field in fields {
            let name = field.name.canonicalName
            if stripped.contains(name) || named.contains(name) { continue }
            // `X_Remote_User` and `X-Remote-User` are one variable to a CGI-style service.
            if name.utf8.contains(UInt8(ascii: "_")) || field.name == cookie.fieldName { continue }
            if field.name == .authorization, !keepsAuthorization { continue }
            if key != nil, field.name == idempotencyKey { continue }
            if field.name == .cookie {
                if let kept = cookie.removed(from: field.value) { forwarded.append(.init(name: .cookie, value: kept)) }
                continue
            }
            forwarded.append(field)
        }
        if let user { forwarded[remoteUser] = user }
        if let key { forwarded[idempotencyKey] = key }
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
            if named.contains(name) || (hopByHop.contains(name) && name != "content-length") { continue }
            if field.name == .setCookie, cookie.isNamed(by: field.value.prefix { $0 != ";" }) { continue }
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
