import AssentCore

/// AM's question about one resource, and the answer, without I/O (am-server reference, policies). `method`,
/// `contentType`, `body`, `idempotencyKey` and `report` in the environment are ours.
enum EvaluateWire {
    /// The content of a question.
    static func question(
        _ request: EnforcedRequest, policySet: String, reportsOutcomes: Bool
    ) -> JSONObject {
        var environment: JSONObject = ["method": [.string(request.method)]]
        if let type = request.contentType { environment["contentType"] = [.string(type)] }
        if let body = request.body { environment["body"] = [.string(Base64URL.encode(body))] }
        if let key = request.idempotencyKey { environment["idempotencyKey"] = [.string(key)] }
        if let id = request.transactionID { environment["TxId"] = [.string(id)] }
        if let address = request.clientAddress { environment["IP"] = [.string(address)] }
        if reportsOutcomes { environment["report"] = ["outcome"] }
        let subject: JSONObject =
            switch request.subject {
            case .session(let token): ["ssoToken": .string(token.reveal())]
            case .idToken(let token): ["jwt": .string(token.reveal())]
            }
        return [
            "resources": [.string(request.resource)], "application": .string(policySet),
            "subject": .object(subject), "environment": .object(environment),
        ]
    }

    /// Reads the answer to `request`.
    ///
    /// - Throws: ``EnforcementError`` `malformedReply` for one that is about another resource, or has another shape: it
    ///   allows nothing.
    static func decision(
        _ json: JSONValue?, of request: EnforcedRequest
    ) throws(EnforcementError) -> EnforcementDecision {
        guard let elements = json?.array, elements.count == 1, let answer = elements[0].object,
            answer.duplicateNames.isEmpty
        else { throw malformed("it is not one decision") }
        guard let resource = answer["resource"]?.string, resource.utf8.elementsEqual(request.resource.utf8) else {
            throw malformed("it is about another resource")
        }
        let advices = try members(answer["advices"], "advices")
        if !advices.isEmpty {
            do throws(WireError) {
                return .advised(try Advice(json: .object(JSONObject(advices))))
            } catch {
                throw malformed(error.detail)
            }
        }
        if let used = answer["transaction"] {
            guard let id = used["id"]?.string, let named = request.transactionID, id.utf8.elementsEqual(named.utf8)
            else { throw malformed("it is about another transaction") }
            return .used(transactionID: id, used["outcome"].flatMap(EnforcementOutcome.init))
        }
        var isAllowed = false
        for action in try members(answer["actions"], "actions") {
            guard let value = action.value.bool else { throw malformed("an action is neither true nor false") }
            if action.name.utf8.elementsEqual(request.method.utf8) { isAllowed = value }
        }
        guard isAllowed else { return .denied }
        var attributes: [String: [String]] = [:]
        for member in try members(answer["attributes"], "attributes") {
            guard let values = member.value.strings else { throw malformed("an attribute is not a list of texts") }
            attributes[member.name] = values
        }
        guard let ttl = answer["ttl"]?.integer else { throw malformed("its ttl is not a number") }
        return .permitted(
            EnforcementPermit(transactionID: ttl == 0 ? request.transactionID : nil, attributes: attributes))
    }

    private static func members(
        _ json: JSONValue?, _ name: String
    ) throws(EnforcementError) -> [JSONObject.Member] {
        guard let json else { return [] }
        guard let object = json.object, object.duplicateNames.isEmpty else {
            throw malformed("its \(name) are not an object")
        }
        return object.members
    }

    private static func malformed(_ what: String) -> EnforcementError {
        EnforcementError(.malformedReply, "The server's policy decision cannot be used: \(what).")
    }
}
