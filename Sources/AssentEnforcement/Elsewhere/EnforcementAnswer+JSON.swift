package import AssentCore

extension EnforcementAnswer {
    /// The answer to the question of an attempt, as it is sent.
    package func json(to attempt: String) -> JSONValue {
        var json: JSONObject = ["attempt": .string(attempt)]
        switch self {
        case .granted(let grant):
            json["answer"] = "granted"
            if let user = grant.user { json["user"] = user.json }
            if let scopes = grant.scopes { json["scopes"] = .array(scopes.map { .string($0) }) }
            json.set("transaction", grant.transaction)
            json.set("identity", grant.identity?.reveal())
            json["keepSeconds"] = .integer(grant.keepSeconds)
            json.set("newNonce", grant.newNonce)
        case .advised(let advised):
            json["answer"] = "advised"
            json["advice"] = advised.advice.json
            json["acrValues"] = .array(advised.acrValues.map { .string($0) })
            json["hasToken"] = .bool(advised.hasToken)
            json.set("newNonce", advised.newNonce)
        case .alreadyTaken(let transaction, let outcome, let nonce):
            json["answer"] = "alreadyTaken"
            json["transaction"] = .string(transaction)
            if let outcome { json["outcome"] = outcome.json }
            json.set("newNonce", nonce)
        case .denied(let denial):
            json["answer"] = "denied"
            json["reason"] = .string(denial.reason.rawValue)
            json.set("code", denial.code)
            json.set("detail", denial.detail)
            json.set("newNonce", denial.newNonce)
        case .refused(.cookie):
            json["answer"] = "refusedCookie"
        case .refused(.token(let scheme, let error, let detail, let nonce)):
            json["answer"] = "refusedToken"
            json["scheme"] = .string(scheme.rawValue)
            json.set("error", error)
            json["detail"] = .string(detail)
            json.set("nonce", nonce)
        case .needBody(let form, let limit):
            json["answer"] = "needBody"
            json["form"] = .string(form.rawValue)
            json["limit"] = .integer(limit)
        }
        return .object(json)
    }

    /// Reads the answer to the question of an attempt. An answer that cannot be read whole grants nothing.
    ///
    /// - Throws: ``WireError``: it is not an answer, or one to another question.
    package init(json: JSONValue, to attempt: String) throws(WireError) {
        var members = try WireMembers(json)
        guard try members.attempt().utf8.elementsEqual(attempt.utf8) else {
            throw WireError(.refused, "the answer is to another question")
        }
        switch try members.text("answer", upTo: EnforcementBounds.name) {
        case "granted": self = .granted(try Grant(&members))
        case "advised": self = .advised(try Advised(&members))
        case "alreadyTaken":
            self = .alreadyTaken(
                transaction: try members.text("transaction", upTo: EnforcementBounds.name),
                outcome: try members.optionalOutcome(), newNonce: try members.nonce("newNonce"))
        case "denied": self = .denied(try Denial(&members))
        case "refusedCookie": self = .refused(.cookie)
        case "refusedToken":
            guard let scheme = TokenScheme(rawValue: try members.text("scheme", upTo: 16)) else {
                throw members.fault("scheme", "is not known")
            }
            self = .refused(
                .token(
                    scheme: scheme, error: try members.optionalText("error", upTo: EnforcementBounds.name),
                    detail: try members.text("detail", upTo: 4096), nonce: try members.nonce("nonce")))
        case "needBody":
            guard let form = BodyForm(rawValue: try members.text("form", upTo: 16)) else {
                throw members.fault("form", "is not known")
            }
            guard let limit = try members.optionalInteger("limit", in: 1...Int64(EnforcementBounds.largestBody)) else {
                throw members.fault("limit", "is missing")
            }
            self = .needBody(form, limit: Int(limit))
        default: throw members.fault("answer", "is not known")
        }
        try members.finish()
    }
}

extension EnforcementAnswer.Grant {
    fileprivate init(_ members: inout WireMembers) throws(WireError) {
        self.init()
        if let inner = try members.optionalMembers("user") { user = try EnforcementAnswer.User(inner) }
        if members.value("scopes") != nil {
            scopes = try members.texts("scopes", count: EnforcementBounds.scopes, upTo: EnforcementBounds.name)
        }
        transaction = try members.optionalText("transaction", upTo: EnforcementBounds.name)
        identity = try members.optionalText("identity", upTo: EnforcementBounds.field).map { Secret($0) }
        guard let keep = try members.optionalInteger("keepSeconds", in: 0...86_400) else {
            throw members.fault("keepSeconds", "is missing")
        }
        guard transaction == nil || keep == 0 else {
            throw members.fault("keepSeconds", "belongs to no answer with a transaction")
        }
        keepSeconds = Int(keep)
        newNonce = try members.nonce("newNonce")
    }
}

extension EnforcementAnswer.User {
    fileprivate var json: JSONValue {
        ["id": .string(id), "name": .string(name), "claims": .object(claims)]
    }

    fileprivate init(_ members: WireMembers) throws(WireError) {
        var members = members
        self.init(
            id: try members.text("id", upTo: EnforcementBounds.name),
            name: try members.text("name", upTo: EnforcementBounds.field))
        guard case .object(let object) = try members.required("claims") else {
            throw members.fault("claims", "is not an object")
        }
        guard object.duplicateNames.isEmpty else {
            throw members.fault("claims", "names one claim twice", .duplicate)
        }
        claims = object
        try members.finish()
    }
}

extension EnforcementAnswer.Advised {
    fileprivate init(_ members: inout WireMembers) throws(WireError) {
        self.init(try Advice(json: try members.required("advice")))
        _ = try members.required("acrValues")
        acrValues = try members.texts("acrValues", count: EnforcementBounds.list, upTo: EnforcementBounds.name)
        _ = try members.required("hasToken")
        hasToken = try members.flag("hasToken")
        newNonce = try members.nonce("newNonce")
    }
}

extension EnforcementAnswer.Denial {
    fileprivate init(_ members: inout WireMembers) throws(WireError) {
        guard let reason = Reason(rawValue: try members.text("reason", upTo: EnforcementBounds.name)) else {
            throw members.fault("reason", "is not known")
        }
        self.init(
            reason, code: try members.optionalText("code", upTo: EnforcementBounds.name),
            detail: try members.optionalText("detail", upTo: 4096))
        guard (reason == .request) == (code != nil), (code == nil) == (detail == nil) else {
            throw members.fault("code", "and detail belong to the reason request")
        }
        newNonce = try members.nonce("newNonce")
    }
}

extension JSONObject {
    fileprivate mutating func set(_ name: String, _ text: String?) {
        // `nil` as the right side would stand for JSON's null.
        if let text { self[name] = .string(text) }
    }
}

extension WireMembers {
    fileprivate mutating func nonce(_ name: String) throws(WireError) -> String? {
        try optionalText(name, upTo: EnforcementBounds.name)
    }

    /// What became of a request; `nil` where it is not there.
    fileprivate mutating func optionalOutcome() throws(WireError) -> EnforcementOutcome? {
        guard let json = value("outcome") else { return nil }
        return try EnforcementOutcome(strict: json)
    }
}
