import AssentCore

/// What a step was answered with, to be answered again when the same answer comes again.
struct StoredReply: Sendable {
    /// The reply.
    let result: Result<AuthenticateReply, EngineError>

    /// The session that must come with the repetition as it had to come with the first.
    let sessionID: String?

    init(_ result: Result<AuthenticateReply, EngineError>, sessionID: String?) {
        self.result = result
        self.sessionID = sessionID
    }

    /// Reads what ``secret`` has written.
    ///
    /// - Throws: ``EngineError`` for anything else, for example what an earlier version of the server has stored.
    init(_ secret: Secret) throws {
        let json = try JSONValue.parse(secret.revealBytes())
        sessionID = json["session"]?.string
        if let page = PageContent(json["page"]), let authID = json["authId"]?.string {
            result = .success(.page(AuthenticatePage(authID: Secret(authID), content: page)))
        } else if let url = json["successUrl"]?.string, let realm = json["realm"]?.string {
            var success = AuthenticateSuccess(
                token: json["token"]?.string.map { Secret($0) }, isNewSession: json["new"]?.bool ?? false,
                successURL: url, realm: realm)
            success.failure = json["failure"]?.string.map(EngineError.Code.init)
            success.keyThumbprint = json["key"]?.string
            guard let kind = SessionKind(rawValue: json["kind"]?.string ?? SessionKind.user.rawValue) else {
                throw EngineError.internalFailure("a stored reply is about a session of an unknown kind")
            }
            success.kind = kind
            result = .success(.success(success))
        } else if let code = json["code"]?.string, let detail = json["detail"]?.string {
            result = .failure(
                EngineError(EngineError.Code(rawValue: code), detail, about: json["about"]?.string))
        } else {
            throw EngineError.internalFailure("a stored reply cannot be read")
        }
    }

    /// The text to be sealed: a session's token may be in it.
    var secret: Secret {
        var object = JSONObject()
        object["session"] = sessionID.map(JSONValue.string)
        switch result {
        case .success(.page(let page)):
            object["authId"] = .string(page.authID.reveal())
            object["page"] = page.content.json
        case .success(.success(let success)):
            object["token"] = success.token.map { .string($0.reveal()) }
            object["new"] = .bool(success.isNewSession)
            object["successUrl"] = .string(success.successURL)
            object["realm"] = .string(success.realm)
            object["failure"] = success.failure.map { .string($0.rawValue) }
            object["key"] = success.keyThumbprint.map(JSONValue.string)
            object["kind"] = success.kind == .user ? nil : .string(success.kind.rawValue)
        case .failure(let error):
            object["code"] = .string(error.code.rawValue)
            object["detail"] = .string(error.detail)
            object["about"] = error.subject.map(JSONValue.string)
        }
        return Secret(bytes: JSONValue.object(object).serializedBytes())
    }
}

extension PageContent {
    fileprivate init?(_ json: JSONValue?) {
        guard let json, let stored = json["prompts"]?.array else { return nil }
        let prompts = stored.compactMap(CallbackPrompt.init)
        guard prompts.count == stored.count else { return nil }
        self.init(presentation: PagePresentation(json), prompts: prompts)
    }

    fileprivate var json: JSONValue {
        var object = presentation.json.object ?? JSONObject()
        object["prompts"] = .array(prompts.map(\.json))
        return .object(object)
    }
}
