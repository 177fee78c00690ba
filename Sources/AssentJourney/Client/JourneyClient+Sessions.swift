public import AssentCore

extension JourneyClient {
    /// Whether the server still accepts a session. Asking does not prolong it.
    ///
    /// - Throws: ``JourneyError`` when the server answers something else, ``JourneyFailure`` when there is no readable
    ///   answer.
    public func isAccepted(_ session: Session) async throws -> Bool {
        let reply = try await post(
            "\(configuration.server)/json/\(configuration.realm.path)/sessions?_action=getSessionInfo",
            version: "resource=4.0, protocol=1.0", [:], .session(session))
        if reply.refusesProof { throw Self.proofRefused }
        if reply.status == 200 { return true }
        // Something in between answers 401 as well, with a page of its own, and knows nothing of the session.
        guard let object = (try? JSONValue.parse(reply.body, limits: configuration.limits.json))?.object else {
            throw JourneyFailure(.malformedReply, "The reply is not a JSON object.", status: reply.status)
        }
        if reply.status == 401 { return false }
        throw JourneyError(status: reply.status, body: object)
    }

    /// Ends a session at the server.
    ///
    /// The token goes in the body too, which every version of AM looks at before a cookie that may be another
    /// session's.
    /// - Throws: ``JourneyError`` when the server refuses, ``JourneyFailure`` when there is no readable answer.
    public func signOut(_ session: Session) async throws {
        let body: JSONValue = ["tokenId": .string(session.token.reveal())]
        let reply = try await post(
            "\(configuration.server)/json/\(configuration.realm.path)/sessions?_action=logout",
            version: "resource=3.1,protocol=1.0", body, .session(session))
        if reply.status == 200 { return }
        if reply.refusesProof { throw Self.proofRefused }
        guard let object = (try? JSONValue.parse(reply.body, limits: configuration.limits.json))?.object else {
            throw JourneyFailure(.malformedReply, "The reply is not a JSON object.", status: reply.status)
        }
        throw JourneyError(status: reply.status, body: object)
    }

    static let proofRefused = JourneyFailure(
        .proofRefused, "The server did not accept the proof of the session's key.", status: 401)
}
