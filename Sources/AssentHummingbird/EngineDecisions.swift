import AssentCore
import AssentEnforcement
import HTTPTypes
import Logging

/// The policies are asked on Assent's own wire, as a gateway elsewhere asks: about a session, or an access token with
/// its proof, which the server verifies.
struct EngineDecisions: Sendable {
    let engine: EnforcementClient
    let route: EnforcedRoute
    let requirement: EnforcementQuestion.Requirement
    let reporting: OutcomeReporting

    /// The codes of what is wrong with a request itself, and their statuses.
    private static let statuses = [
        "invalidRequest": 400, "tooLarge": 413, "unsupportedMediaType": 415, "tooManyRequests": 429,
        "payload_encryption_required": 403,
    ]

    /// Refuses a request that names nobody, before its content is read.
    func check(_ received: ReceivedRequest) throws(Refusal) {
        guard received.session != nil || received.tokenScheme != nil else {
            throw Refusal.signInFirst(engine.server)
        }
    }

    /// What the policies allow of a request with this content; `nil` where it was not read.
    func permission(_ received: ReceivedRequest, body: [UInt8]?) async throws -> Permission {
        var exchange = EnforcementExchange(engine, question(received), content: ReceivedContent(known: body))
        let answer: EnforcementAnswer
        do {
            answer = try await exchange.answer(at: engine.clock) { [reporting] in await reporting.add($0) }
        } catch let error as EnforcementError {
            throw undecided(error, received)
        }
        switch answer {
        case .granted(let grant): return try permission(grant, attempt: exchange.question.attempt)
        case .advised(let advised):
            let challenge = try advised.advice.challenges(
                server: engine.server.url, realm: engine.server.realm, scheme: received.tokenScheme ?? .bearer,
                acrValues: advised.acrValues)
            throw Refusal.advised(challenge).giving(nonce: advised.newNonce)
        case .alreadyTaken(let id, let outcome, let nonce):
            throw Refusal.used(id, outcome: outcome?.json ?? .null).giving(nonce: nonce)
        // No cookie is read.
        case .refused(.cookie): throw Refusal.denied
        case .refused(.token(let scheme, let error, let detail, let nonce)):
            let answer = try TokenChallenge.answer(scheme, error: error, scopes: route.scopes)
            throw Refusal(answer.status, detail, fields: [.wwwAuthenticate: answer.field]).giving(nonce: nonce)
        case .denied(let denial): throw refusal(denial).giving(nonce: denial.newNonce)
        case .needBody:
            // It was sent all that there is.
            throw EnforcementError(.malformedReply, "The server asks for content that it has.")
        }
    }

    private func question(_ received: ReceivedRequest) -> EnforcementQuestion {
        var credentials = EnforcementQuestion.Credentials(proofURL: received.proofURL)
        credentials.session = received.session
        credentials.authorization = received.authorization.map { Secret($0) }
        credentials.proofs = received.proofs
        var question = EnforcementQuestion(
            policySet: route.policySet, resource: received.resource.url, method: received.method,
            credentials: credentials, requirement: requirement, attempt: engine.random.token())
        // An empty text is left out on the wire. A body without a type cannot be bound.
        question.contentType = received.contentType.flatMap { $0.isEmpty ? nil : $0 }
        question.idempotencyKey = received.idempotencyKey.flatMap { $0.isEmpty ? nil : $0 }
        question.transaction = received.transactionID
        question.claims = route.claims
        return question
    }

    private func permission(_ grant: EnforcementAnswer.Grant, attempt: String) throws(Refusal) -> Permission {
        // A policy may let in somebody who is not known, but a handler needs a user.
        guard let user = grant.user else { throw Refusal.signInFirst(engine.server) }
        var permission = Permission(
            access: EnforcedAccess(
                user: EnforcedUser(name: user.name, realm: engine.server.realm),
                claims: Self.texts(user.claims), transactionID: grant.transaction, scopes: grant.scopes))
        permission.newNonce = grant.newNonce
        if let id = grant.transaction {
            permission.report = { [engine] outcome in
                OutcomeReports.Report(
                    OutcomeStatement(transaction: id, attempt: attempt, outcome: outcome), to: engine)
            }
        }
        return permission
    }

    /// Claims as lists of texts; what is neither a text nor a list of texts is its JSON.
    private static func texts(_ claims: JSONObject) -> [String: [String]] {
        var texts: [String: [String]] = [:]
        for claim in claims.members {
            texts[claim.name] = claim.value.strings ?? [claim.value.string ?? claim.value.serialized()]
        }
        return texts
    }

    private func refusal(_ denial: EnforcementAnswer.Denial) -> Refusal {
        switch denial.reason {
        case .noSession: return .signInFirst(engine.server)
        case .forbidden: return .denied
        case .tokenKind: return Refusal(403, "Credentials of this kind are not accepted here.")
        case .request:
            guard let code = denial.code, let status = Self.statuses[code] else { return .undecided }
            return Refusal(status, denial.detail ?? "")
        case .unavailable: return .undecided
        case .outcomeUnknown: return .outcomeUnknown
        }
    }

    /// What an error means for the client. The question was made of what it sent.
    private func undecided(_ error: EnforcementError, _ received: ReceivedRequest) -> any Error {
        if error.code == .refused {
            engine.logger.error("the server refuses a question", metadata: ["error": "\(error)"])
            switch error.status {
            case 400: return Refusal(400, "The request has fields that the server cannot read.")
            case 413: return Refusal(413, "The request is larger than the server takes.")
            default: return EnforcementError(.unavailable, error.detail)
            }
        }
        guard error.mayHaveActed else { return error }
        return EnforcementError(received.transactionID == nil ? .unavailable : .outcomeUnknown, error.detail)
    }
}

/// Content that was read and checked before the server is asked; `nil` where the service reads none.
private struct ReceivedContent: EnforcedContent {
    let known: [UInt8]?

    var isShort: Bool { known != nil }

    func bytes() async throws -> [UInt8] {
        // A policy binds the content, but this middleware was given no `binding`.
        guard let known else { throw Refusal.denied }
        return known
    }

    func checked() async throws -> [UInt8] { try await bytes() }

    func check(_ bytes: [UInt8]) throws {}

    func tooLarge(_ limit: Int) -> any Error { Refusal(413, "The request's body is larger than \(limit) bytes.") }
}
