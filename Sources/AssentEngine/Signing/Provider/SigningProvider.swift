import AssentCore
import AssentJOSE
package import AssentSigningProtocol
import AssentStore
import Logging

/// A realm's transaction signing: the calls of devices, users and relying parties, decided. It speaks no HTTP.
package struct SigningProvider: Sendable {
    /// How it is offered.
    package let settings: SigningSettings

    let context: EngineContext
    let store: SigningStore
    let keys: SigningServerKeys
    let nonces: SigningNonces
    let bell: SigningBell
    let attempts: AttemptCounter
    let notifier: any Notifier

    /// Transaction signing on a context's database.
    ///
    /// - Parameters:
    ///   - context: the database, the clock and what else comes from outside.
    ///   - settings: how it is offered.
    ///   - notifier: who tells users what happens to their devices and what waits for them; without one it is only
    ///     logged.
    package init(_ context: EngineContext, settings: SigningSettings, notifier: (any Notifier)? = nil) {
        self.context = context
        self.settings = settings
        store = SigningStore(context, issuer: settings.issuer)
        keys = SigningServerKeys(context, issuer: settings.issuer)
        nonces = SigningNonces(context, issuer: settings.issuer)
        bell = SigningBell(context)
        attempts = AttemptCounter(context)
        self.notifier = notifier ?? LogNotifier(context.logger)
    }

    var iss: String { settings.issuer.name }

    /// The time, in seconds since 1970.
    package var now: Int64 { store.now }

    /// A nonce for the next proof.
    package func nonce() -> String { nonces.make() }

    /// What the issuer says of itself, as JSON.
    package func configuration() async throws -> [UInt8] {
        try await context.translatingStoreErrors {
            let keys = try await keys.current()
            guard let identity = keys.identity else { throw SigningRefusal(.unavailable) }
            return IssuerConfiguration(
                issuer: iss, name: settings.name, identity: identity, next: keys.next,
                certificates: keys.certificates(at: now)
            ).encoded()
        }
    }

    /// Answers a call of a device.
    ///
    /// - Parameters:
    ///   - call: which one.
    ///   - proof: the field `TSP-Proof`.
    ///   - body: the request's body.
    ///   - address: where it came from, to count wrong codes.
    /// - Returns: the compact message to send back.
    /// - Throws: ``SigningRefusal``.
    package func answer(_ call: DeviceCall, proof: String?, body: [UInt8], address: String) async throws(SigningRefusal)
        -> String
    {
        do {
            return try await context.translatingStoreErrors {
                guard body.count <= MessageType.maximumBody else { throw SigningRefusal(.tooLarge) }
                if call == .start { return try await start(body, address: address) }
                do {
                    let request = try await authenticated(call, proof: proof, body: body)
                    return try await dispatch(call, request, address: address)
                } catch let refusal as SigningRefusal where [.badProof, .unknownContainer].contains(refusal.code) {
                    throw try await countBadProof(address) ?? refusal
                }
            }
        } catch let error as SigningProtocolError {
            throw SigningRefusal(error)
        } catch {
            if !(error is SigningRefusal) { context.logger.error("signing failed", metadata: ["error": "\(error)"]) }
            throw SigningRefusal(answering: error)
        }
    }

    private func dispatch(_ call: DeviceCall, _ request: DeviceRequest, address: String) async throws -> String {
        switch call {
        case .start: throw SigningRefusal(.invalidRequest)
        case .evaluate: try await evaluate(request)
        case .commit: try await commit(request)
        case .complete: try await complete(request)
        case .confirm: try await confirm(request)
        case .status: try await plainStatus(request)
        case .list: try await list(request)
        case .fetch: try await fetch(request)
        case .create: try await create(request)
        case .decide: try await decide(request)
        case .unlock: try await unlock(request)
        case .confirmEvaluation: try await confirmEvaluation(request)
        case .startChange: try await startChange(request)
        case .commitChange: try await commitChange(request)
        case .update: try await update(request)
        case .delete: try await delete(request)
        case .claim: try await claim(request)
        case .renewStart: try await renewStart(request, address: address)
        case .renewEvaluate: try await renewEvaluate(request)
        case .renewCommit: try await renewCommit(request)
        case .renewComplete: try await renewComplete(request)
        case .renewConfirm: try await renewConfirm(request)
        }
    }

    /// Verifies the proof, then opens the body.
    private func authenticated(_ call: DeviceCall, proof: String?, body: [UInt8]) async throws -> DeviceRequest {
        guard let proof else { throw SigningRefusal(.badProof) }
        let unverified: UnverifiedMessage<CallProof>
        do {
            unverified = try UnverifiedMessage<CallProof>(proof)
        } catch let error {
            throw SigningRefusal(error.code == .versionUnsupported ? .versionUnsupported : .badProof)
        }
        let did = unverified.content.did
        let party = try await party(did.text)
        let renewal = try await prover(unverified, of: party, call)
        let content = unverified.content
        guard StrictJSON.same(content.issuer, iss), content.method == "POST",
            StrictJSON.same(content.url, iss + call.path), content.bodyHash == SigningHash(sha256: body)
        else { throw SigningRefusal(.badProof) }
        guard let madeAt = nonces.madeAt(content.nonce),
            try await store.first(SigningNonces.restore(after: madeAt)) == nil
        else { throw SigningRefusal(.useNonce) }
        guard try await attempts.attempt("signing:call:\(did.text)", limit: 120, window: 60) else {
            throw SigningRefusal(.rateLimited, retryAfter: 60)
        }
        let plaintext = try await opened(body, sender: did.text)
        return DeviceRequest(
            party: party, did: did, plaintext: plaintext, hash: .request(proof),
            proof: SpentProof(jti: content.jti.text, did: did.text), nonceMadeAt: madeAt, now: store.now,
            renewal: renewal)
    }

    /// Decrypts a request's body with the key that it names.
    func opened(_ body: [UInt8], sender: String) async throws -> [UInt8] {
        guard let text = String(validating: body, as: UTF8.self) else { throw SigningRefusal(.invalidRequest) }
        let envelope = try SealedEnvelope(text)
        var known = try await keys.current().opening(envelope.kid)
        if known == nil { known = try await keys.current(fresh: true).opening(envelope.kid) }
        guard let known else { throw SigningRefusal(.unknownKey) }
        return try await envelope.opened(
            with: try SoftwareAgreementKey(privateKey: known.privateKey), content: .request, sender: sender,
            recipient: iss)
    }

    private func party(_ did: String) async throws -> DeviceRequest.Party {
        if let container = try await store.container(did: did) {
            let isForgotten = container.endedAt.map { store.now - $0 > DeviceRequest.memory } ?? false
            guard !isForgotten else { throw SigningRefusal(.unknownContainer) }
            return .container(container)
        }
        guard let enrolment = try await store.enrolment(did: did) else { throw SigningRefusal(.unknownContainer) }
        return .enrolment(enrolment)
    }

    /// Counts a wrong code of an address.
    func countWrongCode(_ address: String) async throws -> SigningRefusal {
        try await attempts.attempt("signing:code:\(address)", limit: 10, window: 900)
            ? SigningRefusal(.invalidCode) : SigningRefusal(.rateLimited, retryAfter: 900)
    }

    /// Counts a call of an address whose proof was not good; gives another refusal when there were too many.
    private func countBadProof(_ address: String) async throws -> SigningRefusal? {
        try await attempts.attempt("signing:proof:\(address)", limit: 100, window: 900)
            ? nil : SigningRefusal(.rateLimited, retryAfter: 900)
    }

    /// What every reply has.
    func head(_ request: DeviceRequest) -> SigningReplyHead {
        SigningReplyHead(issuer: iss, audience: request.did.text, issuedAt: Int(request.now), request: request.hash)
    }

    /// Encrypts a signed reply for a container.
    func sealed(_ compact: String, for container: SigningContainerRecord) throws -> String {
        try sealed(compact, to: container.transportJWK, did: container.did)
    }

    /// Encrypts a signed reply to a key of a container.
    func sealed(_ compact: String, to jwk: String, did: String) throws -> String {
        try SealedEnvelope.seal(
            Array(compact.utf8), to: ProtocolKey(JSONValue.parse(jwk)), content: .reply, sender: iss, recipient: did,
            random: context.random)
    }
}

/// A call whose proof is good.
struct DeviceRequest: Sendable {
    /// Who calls.
    enum Party: Sendable {
        case enrolment(SigningEnrolmentRecord)
        case container(SigningContainerRecord)

        /// The device key.
        var deviceKey: ProtocolKey {
            get throws {
                switch self {
                case .enrolment(let enrolment): try ProtocolKey(JSONValue.parse(enrolment.deviceJWK))
                case .container(let container): try ProtocolKey(JSONValue.parse(container.deviceJWK))
                }
            }
        }
    }

    /// Seconds for which a container that has ended may ask how it stands.
    static let memory: Int64 = 365 * 86400

    let party: Party
    let did: SigningID
    let plaintext: [UInt8]
    let hash: SigningHash
    let proof: SpentProof
    let nonceMadeAt: Int64
    let now: Int64

    /// The renewal whose new device key has proved the call; `nil` when the container's device key has.
    let renewal: SigningRenewalRecord?

    /// The container, whatever its state.
    var container: SigningContainerRecord? { if case .container(let container) = party { container } else { nil } }

    /// The container, if it may do more than ask how it stands.
    ///
    /// - Throws: ``SigningRefusal``: why it may not.
    func active() throws -> SigningContainerRecord {
        guard let container else { throw SigningRefusal(.enrolmentVoid) }
        guard container.state(at: now) != .suspect else { throw SigningRefusal(.containerSuspect) }
        if let refusal = container.refusal(approving: false, at: now) { throw refusal }
        return container
    }
}

extension SigningRefusal {
    /// What a message is refused with that breaks the protocol's form.
    init(_ error: SigningProtocolError) {
        switch error.code {
        case .tooLarge: self.init(.tooLarge)
        case .versionUnsupported: self.init(.versionUnsupported)
        default: self.init(.invalidRequest, error.detail)
        }
    }
}
