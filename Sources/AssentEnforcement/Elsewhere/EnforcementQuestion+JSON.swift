package import AssentCore

extension EnforcementQuestion {
    /// The question as it is sent.
    package var json: JSONValue {
        var json = JSONObject(omittingNil: [
            "policySet": .string(policySet), "resource": .string(resource), "method": .string(method),
            "action": action.map(JSONValue.string), "address": address.map(JSONValue.string),
            "credentials": credentials.json,
            "requirement": requirement.json, "contentType": contentType.map(JSONValue.string),
            "idempotencyKey": idempotencyKey.map(JSONValue.string), "transaction": transaction.map(JSONValue.string),
            "attempt": .string(attempt),
        ])
        switch content {
        case .unread: break
        case .whole(let bytes): json["body"] = .string(Base64URL.encode(bytes))
        case .digest(let digest): json["bodySHA256"] = .string(Base64URL.encode(digest))
        }
        if isRecheck { json["recheck"] = true }
        if isApproved { json["approved"] = true }
        if !claims.isEmpty { json["claims"] = .array(claims.map { .string($0) }) }
        if let identity { json["identity"] = identity.json }
        return .object(json)
    }

    /// Reads a question.
    ///
    /// - Throws: ``WireError``: a member is missing, unknown, there twice, of another type or beyond its bound.
    package init(json: JSONValue) throws(WireError) {
        var members = try WireMembers(json)
        policySet = try members.text("policySet", upTo: EnforcementBounds.name)
        resource = try members.text("resource", upTo: EnforcementBounds.url)
        method = try members.text("method", upTo: 32)
        action = try members.optionalText("action", upTo: EnforcementBounds.name)
        address = try members.optionalText("address", upTo: 64)
        credentials = try Credentials(try members.members("credentials"))
        requirement = try Requirement(try members.members("requirement"))
        contentType = try members.optionalText("contentType", upTo: EnforcementBounds.field)
        idempotencyKey = try members.optionalText("idempotencyKey", upTo: EnforcementBounds.field)
        transaction = try members.optionalText("transaction", upTo: EnforcementBounds.name)
        attempt = try members.attempt()
        content = try Content(&members)
        isRecheck = try members.flag("recheck")
        isApproved = try members.flag("approved")
        guard isRecheck || !isApproved else { throw members.fault("approved", "belongs to recheck") }
        claims = try members.texts("claims", count: EnforcementBounds.list, upTo: EnforcementBounds.name)
        identity = nil
        if let inner = try members.optionalMembers("identity") { identity = try Identity(inner) }
        try members.finish()
    }
}

extension WireMembers {
    /// The name of an attempt: base64url.
    mutating func attempt() throws(WireError) -> String {
        let text = try text("attempt", upTo: EnforcementBounds.attempt.upperBound)
        guard text.utf8.count >= EnforcementBounds.attempt.lowerBound,
            text.utf8.allSatisfy({ $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") })
        else { throw fault("attempt", "is not base64url of 128 bits or more") }
        return text
    }
}

extension EnforcementQuestion.Content {
    fileprivate init(_ members: inout WireMembers) throws(WireError) {
        let (body, digest) = (members.value("body"), members.value("bodySHA256"))
        guard body == nil || digest == nil else {
            throw WireError(.malformed, "a question has body or bodySHA256, not both")
        }
        if let body {
            // An empty text is an empty body, which is another thing than none that was read.
            guard let text = body.string, let bytes = Base64URL.decode(text) else {
                throw members.fault("body", "is not base64url")
            }
            guard bytes.count <= EnforcementBounds.largestBody else {
                throw members.fault("body", "has more than \(EnforcementBounds.largestBody) bytes", .tooLarge)
            }
            self = .whole(bytes)
        } else if let digest {
            guard let text = digest.string, let bytes = Base64URL.decode(text), bytes.count == 32 else {
                throw members.fault("bodySHA256", "is not base64url of 32 bytes")
            }
            self = .digest(bytes)
        } else {
            self = .unread
        }
    }
}

extension EnforcementQuestion.Credentials {
    fileprivate var json: JSONValue {
        var json = JSONObject()
        if let session {
            json["session"] = JSONValue(omittingNil: [
                "token": .string(session.reveal()), "carrier": isCookie ? "cookie" : "field",
                "mayUseCookie": isCookie ? .bool(mayUseCookie) : nil,
            ])
        }
        if !authorization.isEmpty { json["authorization"] = .array(authorization.map { .string($0.reveal()) }) }
        if !proofs.isEmpty { json["proofs"] = .array(proofs.map { .string($0) }) }
        json["proofURL"] = .string(proofURL)
        return .object(json)
    }

    fileprivate init(_ members: WireMembers) throws(WireError) {
        var members = members
        if var inner = try members.optionalMembers("session") {
            session = Secret(try inner.text("token", upTo: EnforcementBounds.field))
            switch try inner.text("carrier", upTo: 16) {
            case "cookie":
                isCookie = true
                guard let mayUse = try inner.required("mayUseCookie").bool else {
                    throw inner.fault("mayUseCookie", "is neither true nor false")
                }
                mayUseCookie = mayUse
            case "field": isCookie = false
            default: throw inner.fault("carrier", "is neither cookie nor field")
            }
            try inner.finish()
        }
        authorization = try members.texts(
            "authorization", count: EnforcementBounds.fields, upTo: EnforcementBounds.field
        ).map { Secret($0) }
        proofs = try members.texts("proofs", count: EnforcementBounds.fields, upTo: EnforcementBounds.field)
        proofURL = try members.text("proofURL", upTo: 2 * EnforcementBounds.url)
        try members.finish()
    }
}

extension EnforcementQuestion.Requirement {
    fileprivate var json: JSONValue {
        [
            "scopes": .array(scopes.map { .string($0) }), "audience": .array(audience.map { .string($0) }),
            "includesIssuer": .bool(includesIssuer), "kinds": .array(kinds.map { .string($0) }),
            "isSenderConstrained": .bool(isSenderConstrained),
        ]
    }

    fileprivate init(_ members: WireMembers) throws(WireError) {
        var members = members
        // Nothing here has a value by itself: what a gateway forgot to ask for would be let through.
        for name in ["scopes", "audience", "includesIssuer", "kinds", "isSenderConstrained"] {
            _ = try members.required(name)
        }
        scopes = try members.texts("scopes", count: EnforcementBounds.list, upTo: EnforcementBounds.name)
        audience = try members.texts("audience", count: EnforcementBounds.list, upTo: EnforcementBounds.url)
        includesIssuer = try members.flag("includesIssuer")
        kinds = try members.texts("kinds", count: EnforcementBounds.list, upTo: EnforcementBounds.name)
        isSenderConstrained = try members.flag("isSenderConstrained")
        try members.finish()
    }
}

extension EnforcementQuestion.Identity {
    fileprivate var json: JSONValue {
        [
            "audience": .string(audience), "issuer": .string(issuer), "claims": .array(claims.map { .string($0) }),
        ]
    }

    fileprivate init(_ members: WireMembers) throws(WireError) {
        var members = members
        audience = try members.text("audience", upTo: 512)
        issuer = try members.text("issuer", upTo: EnforcementBounds.url)
        claims = try members.texts("claims", count: EnforcementBounds.list, upTo: EnforcementBounds.name)
        try members.finish()
    }
}
