public import AssentCore
public import Logging

/// Asks an AM server what its policies say of the requests that a service got: the client of a policy enforcement
/// point.
///
/// ```swift
/// let server = try PolicyServer("https://am.bank.example/am", realm: "/alpha")
/// let account = ServiceAccount(
///     server, journey: "Service", username: "payments", password: password, transport: transport)
/// let policies = PolicyClient(server, policySet: "payments", credentials: account, transport: transport)
/// ```
///
/// It keeps no decisions: each request is one question. Where it throws, nothing is allowed.
public struct PolicyClient: Sendable {
    /// The server.
    public let server: PolicyServer

    /// The policy set.
    public let policySet: String

    /// Bounds of each exchange.
    public var limits = HTTPLimits.policyServer

    /// Whether the server is told what became of requests whose transaction was used up, and says so to who asks again
    /// with it. Only Assent's server knows that: `false` for AM.
    public var reportsOutcomes = true

    /// What is logged: which decisions failed and why, never a credential.
    public let logger: Logger

    private let credentials: any EnforcementCredentials
    private let transport: any HTTPTransport

    /// A client.
    ///
    /// - Parameters:
    ///   - server: the server, and the realm of the service's users.
    ///   - policySet: the policy set (AM's `application`).
    ///   - credentials: the service's own; their user has the role `pep`.
    ///   - transport: carries the questions; it verifies the server.
    ///   - logger: where failures go.
    public init(
        _ server: PolicyServer, policySet: String, credentials: any EnforcementCredentials,
        transport: any HTTPTransport,
        logger: Logger = Logger(label: "assent.enforcement", factory: { _ in SwiftLogNoOpLogHandler() })
    ) {
        self.server = server
        self.policySet = policySet
        self.credentials = credentials
        self.transport = transport
        self.logger = logger
    }

    /// What the policies say of a request. A transaction that allows it is used up by this.
    ///
    /// ```swift
    /// var request = EnforcedRequest(
    ///     "POST", "https://pay.bank.example/transfers", subject: .session(session), transactionID: transaction)
    /// request.contentType = "application/json"
    /// request.body = body
    /// let decision = try await policies.decide(request)
    /// guard case .permitted(let permit) = decision else { return false }
    /// // … carry it out, once …
    /// if let id = permit.transactionID { try await policies.report(.answered(status: 201), ofTransaction: id) }
    /// ```
    ///
    /// A question about a transaction whose reply is lost is not asked again; its outcome is reported as `unknown`.
    ///
    /// - Throws: ``EnforcementError``. Nothing is allowed then.
    public func decide(_ request: EnforcedRequest) async throws(EnforcementError) -> EnforcementDecision {
        // Servers take a question that names nobody for one about its sender, the service.
        guard !request.subject.isEmpty else { return .denied }
        do throws(EnforcementError) {
            return try await answer(to: request)
        } catch {
            if error.code == .outcomeUnknown, let id = request.transactionID { await reportUnknown(id) }
            throw error
        }
    }

    private func answer(to request: EnforcedRequest) async throws(EnforcementError) -> EnforcementDecision {
        var post = PolicyPost(
            url: server.json("policies?_action=evaluate"), version: Self.policyVersion,
            content: EvaluateWire.question(request, policySet: policySet, reportsOutcomes: reportsOutcomes))
        if request.transactionID != nil { post.loss = .outcomeUnknown }
        let reply = try await send(post)
        guard reply.status == 200 else { throw refusal(reply, loss: post.loss) }
        do throws(EnforcementError) {
            return try EvaluateWire.decision(reply.json, of: request)
        } catch {
            // Whatever it says, it may have used the transaction up.
            throw request.transactionID == nil ? error : EnforcementError(.outcomeUnknown, error.detail)
        }
    }

    /// Reports `unknown`: without that the record would say that the request is about to be carried out. This client
    /// cannot say that nothing was carried out, since another request may have named the same transaction. What is
    /// reported of that request replaces `unknown`.
    private func reportUnknown(_ id: String) async {
        guard reportsOutcomes else { return }
        // A task of its own, because the caller may be cancelled: that can be why the reply is missing.
        await Task {
            do throws(EnforcementError) {
                try await report(.unknown, ofTransaction: id)
            } catch {
                // The server does not know of it, or says the same itself after a time.
                logger.info(
                    "an unknown outcome could not be reported",
                    metadata: ["transaction": "\(id)", "error": "\(error)"])
            }
        }.value
    }

    /// The user of a session; `nil` when it is not alive, is of another realm than the server's here, or belongs to a
    /// key: only its own app can prove that.
    ///
    /// - Throws: ``EnforcementError``.
    public func user(of session: Secret) async throws(EnforcementError) -> EnforcedUser? {
        // For an empty one the server would answer about the service's own.
        guard !session.reveal().isEmpty else { return nil }
        let post = PolicyPost(
            url: server.json("sessions?_action=validate&refresh=false"), version: "resource=4.0, protocol=1.0",
            content: ["tokenId": .string(session.reveal())])
        let reply = try await send(post)
        if reply.status == 401, reply.wantsProof { return nil }
        guard reply.status == 200 else { throw refusal(reply, loss: .unavailable) }
        guard let isValid = reply.json?["valid"]?.bool else {
            throw EnforcementError(.malformedReply, "The server does not say whether a session is valid.")
        }
        guard isValid else { return nil }
        guard let name = reply.json?["uid"]?.string, !name.isEmpty, let realm = reply.json?["realm"]?.string else {
            throw EnforcementError(.malformedReply, "The server does not say whose session it is.")
        }
        // AM tells of sessions of all realms, and its AuthenticatedUsers are of any. A name is unique in one.
        guard realm.utf8.elementsEqual(server.realm.utf8) else { return nil }
        return EnforcedUser(name: name, realm: realm)
    }

    /// Tells the server what became of a request whose transaction was used up. It may be repeated; what is known is
    /// not overwritten.
    ///
    /// - Throws: ``EnforcementError``; also where the server has no such action (AM).
    public func report(_ outcome: EnforcementOutcome, ofTransaction id: String) async throws(EnforcementError) {
        let post = PolicyPost(
            url: server.json("policies?_action=report"), version: Self.policyVersion,
            content: ["transaction": .string(id), "outcome": outcome.json])
        let reply = try await send(post)
        guard reply.status == 200 else { throw refusal(reply, loss: .unavailable) }
    }

    private static let policyVersion = "resource=2.0, protocol=1.0"

    /// Sends with the service's session; once more with another one, where the server does not know this one: then it
    /// has done nothing.
    private func send(_ post: PolicyPost) async throws(EnforcementError) -> PolicyPost.Reply {
        let session = try await credentials.session(replacing: nil)
        let reply = try await post.send(server, session: session, limits: limits, over: transport)
        guard reply.status == 401, !reply.wantsProof else { return reply }
        let fresh = try await credentials.session(replacing: session)
        return try await post.send(server, session: fresh, limits: limits, over: transport)
    }

    private func refusal(_ reply: PolicyPost.Reply, loss: EnforcementError.Code) -> EnforcementError {
        switch reply.status {
        case 400, 413, 415, 429:
            EnforcementError(.refused, reply.message ?? "The request cannot be decided on.", status: reply.status)
        case 401: EnforcementError(.notSignedIn, "The policy server does not accept the service's session.")
        case 403: EnforcementError(.forbidden, "The policy server does not let the service ask.")
        case 404: EnforcementError(.unknownPolicySet, "The policy server does not know what was asked about.")
        default: EnforcementError(loss, "The policy server answered with status \(reply.status).")
        }
    }
}
