package import AssentCore

extension JourneyClient {
    /// Asks the server for its decision about a resource and the user of a session (AM's `policies?_action=evaluate`).
    ///
    /// - Parameters:
    ///   - resource: the URL, as it will be compared.
    ///   - application: the policy set.
    ///   - session: whose access it is, and who asks.
    ///   - transactionID: the transaction that was approved for it.
    /// - Returns: the answer's one element.
    /// - Throws: ``JourneyError`` when the server refuses, ``JourneyFailure`` when there is no readable answer.
    package func evaluate(
        _ resource: String, application: String, session: Session, transactionID: String?
    ) async throws -> JSONObject {
        let body = JSONObject(omittingNil: [
            "resources": [.string(resource)], "application": .string(application),
            "subject": ["ssoToken": .string(session.token.reveal())],
            "environment": transactionID.map { ["TxId": [.string($0)]] },
        ])
        let reply = try await post(
            "\(configuration.server)/json/\(configuration.realm.path)/policies?_action=evaluate",
            version: "resource=2.0, protocol=1.0", .object(body), .session(session))
        let json = try? JSONValue.parse(reply.body, limits: configuration.limits.json)
        guard reply.status == 200 else {
            if reply.refusesProof { throw Self.proofRefused }
            guard let object = json?.object else {
                throw JourneyFailure(.malformedReply, "The reply is not a JSON object.", status: reply.status)
            }
            throw JourneyError(status: reply.status, body: object)
        }
        guard let elements = json?.array, elements.count == 1, let decision = elements[0].object,
            decision.duplicateNames.isEmpty
        else {
            throw JourneyFailure(.malformedReply, "The reply is not one policy decision.", status: reply.status)
        }
        return decision
    }
}
