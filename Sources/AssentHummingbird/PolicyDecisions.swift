import AssentCore
import AssentEnforcement
import HTTPTypes

/// The policies are asked by AM's question, which is about the user of a session.
struct PolicyDecisions: Sendable {
    let policies: PolicyClient

    /// Who calls, before anything of a transaction is touched.
    func caller(_ received: ReceivedRequest) async throws -> (user: EnforcedUser, session: Secret) {
        let server = policies.server
        guard let session = received.session else {
            guard received.tokenScheme != nil else { throw Refusal.signInFirst(server) }
            throw Refusal.signInFirst(
                server,
                "The service takes no access token: its policies are asked about sessions. Sign in, and send the session in the field \(server.sessionCookieName)."
            )
        }
        guard let user = try await policies.user(of: session) else { throw Refusal.signInFirst(server) }
        return (user, session)
    }

    /// What the policies allow of a request with this content; `nil` where it was not read.
    func permission(
        _ received: ReceivedRequest, _ caller: (user: EnforcedUser, session: Secret), body: [UInt8]?
    ) async throws -> Permission {
        var question = EnforcedRequest(
            received.method, received.resource.url, subject: .session(caller.session),
            transactionID: received.transactionID)
        question.idempotencyKey = received.idempotencyKey
        if let body {
            question.contentType = received.contentType
            question.body = body
        }
        let permit = try await permit(question)
        let access = EnforcedAccess(
            user: caller.user, claims: permit.attributes, transactionID: permit.transactionID)
        guard let id = permit.transactionID, policies.reportsOutcomes else { return Permission(access: access) }
        return Permission(access: access) { [policies] outcome in
            OutcomeReports.Report(id) { () async throws(EnforcementError) in
                try await policies.report(outcome, ofTransaction: id)
            }
        }
    }

    private func permit(_ question: EnforcedRequest) async throws -> EnforcementPermit {
        switch try await policies.decide(question) {
        case .permitted(let permit): return permit
        case .used(let id, let outcome): throw Refusal.used(id, outcome: outcome?.json ?? .null)
        case .advised(let advice):
            // Who names a transaction and is told another one would be asked again and again.
            guard question.transactionID == nil || advice.transactionID == nil else { throw Refusal.denied }
            throw Refusal.advised(
                try advice.challengeFieldValue(server: policies.server.url, realm: policies.server.realm))
        case .denied: throw Refusal.denied
        }
    }
}
