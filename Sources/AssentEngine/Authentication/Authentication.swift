import AssentCore
import AssentStore
import Logging

/// `authenticate`: runs journeys page by page, and gives sessions and approvals at their end.
///
/// A journey's first request is a ``Beginning``, the answer to a page an ``Answering``. Both end in a ``JourneyTurn``,
/// which walks the journey on, stores where it got to, and replies.
package struct Authentication: Sendable {
    let context: EngineContext
    let realms: [String: RealmSignIn]
    let transactions: Transactions
    let services: JourneyServices
    let sessions: Sessions
    let proofs: SenderProofs
    let clients: [String: OAuthProviderConfiguration]
    let audit: AuditLog
    let steps: StepStore
    let signer: AuthIDSigner
    let starts: AttemptCounter
    let startsPerMinute: Int64
    let inFlight = WorkInFlight()

    /// A service.
    ///
    /// - Parameters:
    ///   - context: what the engine stands on.
    ///   - realms: how users sign in, by the realms' names, for example `/alpha`.
    ///   - startsPerMinute: how many journeys clients at one address may begin in a minute; each is a row in the
    ///     database until it expires.
    ///   - transactions: what journeys may approve.
    ///   - passwords: what checks them.
    ///   - oneTimePasswords: what checks them.
    ///   - signing: how users sign on their devices, by realm.
    ///   - proofs: verifies proofs of keys, for all doors of the process.
    ///   - clients: the clients and apps, by realm; they say who may have sessions of the kind `stateless`. Where no
    ///     app allows them any more, those of before are not found.
    package init(
        _ context: EngineContext, realms: [String: RealmSignIn], startsPerMinute: Int64 = 600,
        transactions: Transactions, passwords: Passwords, oneTimePasswords: OneTimePasswords,
        signing: [String: SigningProvider] = [:], proofs: SenderProofs,
        clients: [String: OAuthProviderConfiguration] = [:]
    ) {
        self.context = context
        self.realms = realms
        self.transactions = transactions
        self.startsPerMinute = startsPerMinute
        services = JourneyServices(
            users: Users(context), passwords: passwords, oneTimePasswords: oneTimePasswords, signing: signing)
        sessions = Sessions(context, apps: clients.mapValues { $0.apps.values.sorted { $0.id < $1.id } })
        self.proofs = proofs
        self.clients = clients
        audit = AuditLog(context)
        steps = StepStore(context)
        signer = AuthIDSigner(context.masterKey)
        starts = AttemptCounter(context)
    }

    /// Answers one request to `authenticate`.
    ///
    /// - Throws: ``EngineError``. Nothing has changed when it is about the request itself, or transient.
    ///   ``SenderProofRefusal`` when the journey, or the session that comes along, belongs to a key that the request
    ///   does not prove: then nothing was answered.
    package func authenticate(_ request: AuthenticateRequest) async throws -> AuthenticateReply {
        guard let realm = realms[request.realm] else {
            throw EngineError(.unknownRealm, about: String(request.realm.prefix(100)))
        }
        // No journey can be suspended yet, so no id is valid.
        guard request.suspendedID == nil else { throw EngineError(.suspendedJourneyUnknown) }
        return try await context.translatingStoreErrors {
            if let answer = request.answer {
                try await Answering(engine: self, realm: realm, request: request, answer: answer).reply()
            } else {
                try await Beginning(engine: self, realm: realm, request: request).reply()
            }
        }
    }

    /// Deletes the steps of journeys that have expired. Returns how many.
    package func purge() async throws -> Int {
        try await context.translatingStoreErrors { try await steps.purge() }
    }
}

extension Authentication {
    /// The session that came with a request, when it is alive and of the request's realm.
    func liveSession(_ request: AuthenticateRequest) async throws -> LiveSession? {
        guard let token = request.sessionToken, let session = try await sessions.live(token: token),
            session.realm == request.realm
        else { return nil }
        return session
    }

    /// Notes that a transaction's journey was asked for without the session that it needs.
    func refuse(transactionID: String, realm: String) async throws {
        try await audit.write(
            AuditRecord(
                .authenticate, .refused, reason: "session", realm: realm,
                transactionID: transactionID.utf8.count <= 64 ? transactionID : nil))
    }
}
