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

    init(_ secret: Secret) throws {
        let json = try JSONValue.parse(secret.revealBytes())
        sessionID = json["session"]?.string
        if let content = json["page"]?.object, let authID = json["authId"]?.string {
            result = .success(.page(AuthenticatePage(authID: Secret(authID), content: content)))
        } else if let url = json["successUrl"]?.string, let realm = json["realm"]?.string {
            result = .success(
                .success(
                    AuthenticateSuccess(
                        token: json["token"]?.string.map { Secret($0) }, isNewSession: json["new"]?.bool ?? false,
                        successURL: url, realm: realm)))
        } else if let code = json["code"]?.string, let detail = json["detail"]?.string {
            result = .failure(
                EngineError(EngineError.Code(rawValue: code), detail, about: json["about"]?.string))
        } else {
            throw EngineError.internalFailure("a stored reply cannot be read")
        }
    }

    /// The text to be sealed: it may have a session's token in it.
    var secret: Secret {
        var object = JSONObject()
        object["session"] = sessionID.map(JSONValue.string)
        switch result {
        case .success(.page(let page)):
            object["authId"] = .string(page.authID.reveal())
            object["page"] = .object(page.content)
        case .success(.success(let success)):
            object["token"] = success.token.map { .string($0.reveal()) }
            object["new"] = .bool(success.isNewSession)
            object["successUrl"] = .string(success.successURL)
            object["realm"] = .string(success.realm)
        case .failure(let error):
            object["code"] = .string(error.code.rawValue)
            object["detail"] = .string(error.detail)
            object["about"] = error.subject.map(JSONValue.string)
        }
        return Secret(bytes: JSONValue.object(object).serializedBytes())
    }
}
