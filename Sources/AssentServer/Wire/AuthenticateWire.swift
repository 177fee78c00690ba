import AssentCore
import AssentEngine

/// The bodies of `authenticate` as AM writes and reads them (am-server reference, authenticate).
extension AuthenticateReply {
    /// The body. It holds the authId or the token: it is for the wire alone.
    var json: JSONValue {
        switch self {
        case .page(let page): .object(page.json)
        case .success(let success): .object(success.json)
        }
    }
}

extension AuthenticatePage {
    var json: JSONObject {
        var object: JSONObject = ["authId": .string(authID.reveal())]
        for member in content.json.members { object[member.name] = member.value }
        return object
    }
}

extension PageContent {
    /// `stage`, `header`, `description` where there are any, and `callbacks`.
    var json: JSONObject {
        var object = JSONObject()
        object["stage"] = presentation.stage.map(JSONValue.string)
        object["header"] = presentation.header.map(JSONValue.string)
        object["description"] = presentation.description.map(JSONValue.string)
        object["callbacks"] = .array(prompts.enumerated().map { $0.element.json(place: $0.offset + 1) })
        return object
    }
}

extension AuthenticateSuccess {
    /// AM's members; for a session that belongs to a key, `cnf` as in tokens (RFC 7800 §3, RFC 9449 §6.1); and for one
    /// that is not of the usual kind, which it is.
    var json: JSONObject {
        var object = JSONObject()
        object["tokenId"] = token.map { .string($0.reveal()) }
        object["successUrl"] = .string(successURL)
        object["realm"] = .string(realm)
        object["failure"] = failure.map { .string($0.rawValue) }
        object["cnf"] = keyThumbprint.map { ["jkt": .string($0)] }
        object["assent_kind"] = kind == .user ? nil : .string(kind.rawValue)
        return object
    }
}

extension PageAnswer {
    /// Reads the body of a request; `nil` for the empty body of a journey's first request.
    ///
    /// - Parameters:
    ///   - body: the body.
    ///   - bytes: the body as it came.
    /// - Throws: ``EngineError`` for a body that is not empty and has no readable `authId`.
    init?(_ body: JSONObject, bytes: [UInt8]) throws(EngineError) {
        guard let authID = body["authId"] else {
            guard body.members.isEmpty else {
                throw EngineError(.authIDUnreadable, "the authId is missing")
            }
            return nil
        }
        guard let text = authID.string else { throw EngineError(.authIDUnreadable) }
        self.init(
            authID: text, callbacks: body["callbacks"]?.array.map { $0.map(ReturnedCallback.init) }, bytes: bytes)
    }
}
