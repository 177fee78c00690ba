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

    /// What a service may believe, since only the gateway sends it, and what is meant for the gateway. No route can let
    /// a client's own pass.
    private static let gatewaysOwn: Set<String> = [
        "x-remote-user", "forwarded", "via", "x-txid", "x-idtoken", "x-authenticate-response", "dpop",
        RouteIdentity.usualField.canonicalName,
    ]

    private static let gatewaysFamily = "x-forwarded-"

    /// By which some services take another method or another path than the request has. The policies decide about the
    /// request's own, and a client that needs the other method can send it.
    private static let overrides: Set<String> = [
        "x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url",
    ]

    /// The fields of clients that go on by themselves: they say what is asked for, in which form, and on which trace,
    /// but not who asks. A list of those that do not would never be complete: each proxy and sign-in service has names
    /// of its own by which it tells applications who calls.
    private static let ordinary: Set<String> = [
        // RFC 9110, 9111 and what the registry of field names has beside them for requests.
        "accept", "accept-charset", "accept-datetime", "accept-encoding", "accept-language", "a-im",
        "cache-control", "content-digest", "content-disposition", "content-encoding", "content-language",
        "content-location", "content-md5", "content-range", "content-type", "cookie", "date", "digest", "dnt",
        "early-data", "idempotency-key", "if-match", "if-modified-since", "if-none-match", "if-range",
        "if-unmodified-since", "last-event-id", "last-modified", "link", "max-forwards", "mime-version", "origin",
        "pragma", "prefer", "priority", "range", "referer", "repr-digest", "signature", "signature-input", "slug",
        "upgrade-insecure-requests", "user-agent", "want-content-digest", "want-digest", "want-repr-digest", "warning",
        // What browsers add: pages cannot set `Sec-` at all.
        "access-control-request-headers", "access-control-request-method", "access-control-request-private-network",
        "device-memory", "downlink", "dpr", "ect", "purpose", "rtt", "save-data", "viewport-width", "width",
        "x-requested-with",
        // A form's protection against forgery. They prove nothing without the page's cookie.
        "csrf-token", "x-csrf-token", "x-csrftoken", "x-xsrf-token",
        // Which version of an interface is meant. `SOAPAction` is not among them: it names the operation, and no
        // approval binds it.
        "accept-api-version", "accept-version", "api-version", "x-api-version", "dataserviceversion",
        "odata-maxversion", "odata-version", "x-ms-version",
        // Traces.
        "b3", "baggage", "correlation-id", "grpc-timeout", "request-id", "traceparent", "tracestate",
        "x-amzn-trace-id", "x-b3-flags", "x-b3-parentspanid", "x-b3-sampled", "x-b3-spanid", "x-b3-traceid",
        "x-cloud-trace-context", "x-correlation-id", "x-request-id", "x-trace-id",
    ]

    private static let ordinaryFamily = "sec-"

    /// Whether a route can name a field that passes: not those of one hop, those that the gateway sets itself, those
    /// that two names would be one name for, and those that make another request of it.
    static func canPass(_ name: HTTPField.Name) -> Bool {
        let name = name.canonicalName
        return !hopByHop.contains(name) && !gatewaysOwn.contains(name) && !name.hasPrefix(gatewaysFamily)
            && !overrides.contains(name) && name != "authorization" && !name.utf8.contains(UInt8(ascii: "_"))
    }

    /// Whether a route can name a field for what the gateway says of the caller: none that clients send by themselves,
    /// and none that has a meaning already.
    static func canIdentify(_ name: HTTPField.Name) -> Bool {
        name == RouteIdentity.usualField
            || canPass(name) && !ordinary.contains(name.canonicalName) && !name.canonicalName.hasPrefix(ordinaryFamily)
    }

    private static let forwardedProto = HTTPField.Name("X-Forwarded-Proto")!
    private static let forwardedFor = HTTPField.Name("X-Forwarded-For")!
    private static let via = HTTPField.Name("Via")!
    private static let forwardedHost = HTTPField.Name("X-Forwarded-Host")!

    /// Which fields of clients a service gets.
    struct Rules: Sendable, Hashable {
        /// The session's cookie, which it never gets.
        var cookie: SessionCookie
        /// Whether it gets `Authorization`.
        var keepsAuthorization: Bool
        /// Further fields that go on, in lower case.
        var passes: Set<String> = []
        /// Ordinary fields that do not, in lower case.
        var strips: Set<String> = []
    }

    /// The fields of a request as the service gets them.
    ///
    /// - Parameters:
    ///   - fields: as the client sent them.
    ///   - rules: which of them go on.
    ///   - user: who is named to the service; `nil` for nobody.
    ///   - key: the `Idempotency-Key` that the gateway gives; `nil` leaves the client's own.
    ///   - publicOrigin: where clients find the gateway.
    ///   - client: the client's address.
    /// - Returns: the fields that go on, and the gateway's own.
    static func request(
        _ fields: HTTPFields, _ rules: Rules, user: String?, idempotencyKey key: String?, publicOrigin: Origin,
        client: String? = nil
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
            if field.name == rules.cookie.fieldName || rules.strips.contains(name) { continue }
            if !named.isEmpty && named.contains(name) { continue }
            if name == "authorization" {
                guard rules.keepsAuthorization else { continue }
            } else if !ordinary.contains(name), !name.utf8.starts(with: ordinaryFamily.utf8),
                !rules.passes.contains(name)
            {
                continue
            }
            if key != nil, field.name == .idempotencyKey { continue }
            if field.name == .cookie {
                if let kept = rules.cookie.removed(from: field.value) {
                    forwarded.append(.init(name: .cookie, value: kept))
                }
                continue
            }
            forwarded.append(field)
        }
        // None of these is there yet: no client's own has passed.
        if let user { forwarded.append(HTTPField(name: remoteUser, value: user)) }
        if let key { forwarded.append(HTTPField(name: .idempotencyKey, value: key)) }
        forwarded.append(HTTPField(name: via, value: "1.1 assent"))
        if let client { forwarded.append(HTTPField(name: forwardedFor, value: client)) }
        forwarded.append(HTTPField(name: forwardedProto, value: publicOrigin.scheme))
        forwarded.append(HTTPField(name: forwardedHost, value: publicOrigin.authority))
        return forwarded
    }

    /// The fields of the service's reply as the client gets them. A service may not set the session cookie, and has no
    /// say in proofs: they are for the gateway, and so are nonces (RFC 9449 §9).
    static func reply(_ fields: HTTPFields, cookie: SessionCookie) -> HTTPFields {
        let named = connectionNamed(fields)
        var forwarded = HTTPFields()
        for field in fields {
            let name = field.name.canonicalName
            if !named.isEmpty && named.contains(name) { continue }
            if hopByHop.contains(name) && name != "content-length" { continue }
            if field.name == .setCookie, !cookie.mayBeSet(by: field.value) { continue }
            if field.name == .dpopNonce { continue }
            if field.name == .wwwAuthenticate {
                if let kept = withoutProofChallenges(field.value) {
                    forwarded.append(.init(name: .wwwAuthenticate, value: kept))
                }
                continue
            }
            forwarded.append(field)
        }
        return forwarded
    }

    /// A service's challenges without those that ask for a proof; `nil` when none is left, or when the field names the
    /// scheme and cannot be read.
    private static func withoutProofChallenges(_ value: String) -> String? {
        guard value.lowercased().contains(TokenScheme.dpop.rawValue.lowercased()) else { return value }
        guard let challenges = try? Challenge.parse(value) else { return nil }
        let kept = challenges.filter { !$0.isScheme(TokenScheme.dpop.rawValue) }
        guard kept.count < challenges.count else { return value }
        guard !kept.isEmpty else { return nil }
        return try? kept.map { challenge in try challenge.fieldValue() }.joined(separator: ", ")
    }

    private static func connectionNamed(_ fields: HTTPFields) -> Set<String> {
        // `keep-alive` names no field but one that never passes.
        guard fields.contains(where: { $0.name == .connection && $0.value != "keep-alive" }) else { return [] }
        return Set(
            fields[values: .connection].flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }.map { option in
                let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
                return Substring(option.drop(while: isBlank).prefix { !isBlank($0) }).lowercased()
            })
    }
}
