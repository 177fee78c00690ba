import AssentCore

/// Turns a reply of the authenticate endpoint into a node; no I/O.
struct ReplyReading {
    let types: CallbackTypes
    let limits: JourneyLimits

    func node(status: Int, location: String?, body: [UInt8], flow: JourneyFlow) -> JourneyNode {
        if (300..<400).contains(status) {
            let target = location.flatMap { try? Origin($0).description } ?? "one that cannot be read"
            return .failure(
                JourneyFailure(.unexpectedRedirect, "The server leads to another place: \(target).", status: status))
        }
        let json: JSONValue
        do throws(JSONError) {
            json = try JSONValue.parse(body, limits: limits.json)
        } catch {
            if status == 404 { return .error(JourneyError(status: status, body: JSONObject())) }
            return .failure(JourneyFailure(.malformedReply, "The reply is not JSON. \(error.detail)", status: status))
        }
        guard let object = json.object else {
            return .failure(JourneyFailure(.malformedReply, "The reply is not a JSON object.", status: status))
        }
        switch status {
        case 200: return object["authId"] == nil ? success(object, flow) : step(object, flow)
        case 400..<500:
            let code = object["code"]
            if code?.integer == 1999 || code?.string == "requestTimedOut" {
                let message = object["message"]?.string ?? ""
                let detail = message.isEmpty ? "The time for the answer has passed." : String(message.prefix(200))
                return .failure(JourneyFailure(.timedOut, detail, status: status))
            }
            return .error(JourneyError(status: status, body: object))
        case 500..<600: return .error(JourneyError(status: status, body: object))
        default:
            return .failure(
                JourneyFailure(.unexpectedStatus, "The server answered with the status \(status).", status: status))
        }
    }

    private func step(_ object: JSONObject, _ flow: JourneyFlow) -> JourneyNode {
        guard object["authId"]?.string != nil, let callbacks = object["callbacks"]?.array else {
            return .failure(
                JourneyFailure(.malformedReply, "The step has no callbacks or no proper authId.", status: 200))
        }
        guard callbacks.count <= limits.callbacks else {
            return .failure(
                JourneyFailure(.replyTooLarge, "The step has more than \(limits.callbacks) callbacks.", status: 200))
        }
        var objects: [JSONObject] = []
        for callback in callbacks {
            guard let callback = callback.object else {
                return .failure(
                    JourneyFailure(.malformedReply, "A callback of the step is not a JSON object.", status: 200))
            }
            objects.append(callback)
        }
        return .continue(JourneyStep(object, callbacks: objects, types: types, flow: flow.nextStep))
    }

    /// The members of a journey's last reply that a session has by other names.
    private static let told: Set = ["tokenId", "successUrl", "realm", "cnf", "assent_kind"]

    /// A captive portal's `{}` is not a success: a session's token must be there, or one of the other things that AM
    /// always sends.
    private func success(_ object: JSONObject, _ flow: JourneyFlow) -> JourneyNode {
        let token = object["tokenId"]?.string ?? ""
        let isAMs = !token.isEmpty || object["successUrl"]?.string != nil || object["realm"]?.string != nil
        guard isAMs, object["tokenId"].map({ $0.string != nil || $0 == .null }) ?? true else {
            return .failure(
                JourneyFailure(.malformedReply, "The reply is neither a step nor the end of a journey.", status: 200))
        }
        guard token.utf8.allSatisfy(\.isASCIIPrintable) else {
            return .failure(
                JourneyFailure(
                    .malformedReply, "The session's token has characters that no header field can carry.", status: 200))
        }
        // AM's success of a transaction that was not approved, from a server that says which it is.
        guard object["failure"]?.string == nil else { return .error(JourneyError(status: 200, body: object)) }
        var session = Session(
            token: Secret(token), successURL: object["successUrl"]?.string ?? "",
            realm: object["realm"]?.string ?? "", keyThumbprint: object["cnf"]?["jkt"]?.string)
        session.kind = object["assent_kind"]?.string
        session.details = JSONObject(object.members.filter { !Self.told.contains($0.name) })
        return .success(session)
    }
}
