import AssentCore
import AssentJOSE
package import AssentSigningProtocol
import AssentStore
import Logging

/// Where calls of devices come in: who calls is proved, the body is opened, and the part that decides is asked. Who may
/// prove a call is decided here and nowhere else.
package struct SigningDoor: SigningPart {
    package let realm: SigningRealm

    var nonces: SigningNonces { SigningNonces(context, issuer: settings.issuer) }

    /// A nonce for the next proof.
    package func nonce() -> String { nonces.make() }

    /// What the issuer says of itself, as JSON.
    package func configuration() async throws -> [UInt8] {
        try await context.translatingStoreErrors {
            let keys = try await keys.current()
            return IssuerConfiguration(
                issuer: iss, name: settings.name, identity: try keys.requiredIdentity, next: keys.next,
                certificates: keys.certificates(at: now)
            ).encoded()
        }
    }

    /// Answers a call of a device with a compact message. The proof is the field `TSP-Proof`; wrong codes are counted
    /// by the address.
    ///
    /// - Throws: ``SigningRefusal``.
    package func answer(_ call: DeviceCall, proof: String?, body: [UInt8], address: String) async throws(SigningRefusal)
        -> String
    {
        try await answering {
            do {
                guard body.count <= MessageType.maximumBody else { throw SigningRefusal(.tooLarge) }
                if call == .start { return try await enrolments.start(body, address: address) }
                return try await dispatch(call, authenticated(call, proof: proof, body: body, address: address))
            } catch let refusal as SigningRefusal
                where call != .start && [.badProof, .unknownContainer].contains(refusal.code)
            {
                throw try await countBadProof(address) ?? refusal
            } catch let error as SigningProtocolError {
                throw SigningRefusal(error)
            }
        }
    }

    private func dispatch(_ call: DeviceCall, _ request: DeviceRequest) async throws -> String {
        switch call {
        case .start: throw SigningRefusal(.invalidRequest)
        case .evaluate: try await enrolments.evaluate(request)
        case .commit: try await enrolments.commit(request)
        case .complete: try await enrolments.complete(request)
        case .confirm: try await enrolments.confirm(request)
        case .renewStart: try await enrolments.renewStart(request)
        case .renewEvaluate: try await enrolments.renewEvaluate(request)
        case .renewCommit: try await enrolments.commit(request, isRenewal: true)
        case .renewComplete: try await enrolments.renewComplete(request)
        case .renewConfirm: try await enrolments.renewConfirm(request)
        case .status: try await devices.plainStatus(request)
        case .update: try await devices.update(request)
        case .delete: try await devices.delete(request)
        case .unlock: try await slots.unlock(request)
        case .confirmEvaluation: try await slots.confirmEvaluation(request)
        case .startChange: try await slots.startChange(request)
        case .commitChange: try await slots.commitChange(request)
        case .list: try await documents.list(request)
        case .fetch: try await documents.fetch(request)
        case .create: try await documents.create(request)
        case .claim: try await documents.claim(request)
        case .decide: try await decisions.decide(request)
        }
    }

    /// Verifies the proof, then opens the body.
    private func authenticated(
        _ call: DeviceCall, proof: String?, body: [UInt8], address: String
    ) async throws -> DeviceRequest {
        guard let proof else { throw SigningRefusal(.badProof) }
        let unverified: UnverifiedMessage<CallProof>
        do {
            unverified = try UnverifiedMessage<CallProof>(proof)
        } catch {
            throw SigningRefusal(error.code == .versionUnsupported ? .versionUnsupported : .badProof)
        }
        let content = unverified.content
        let did = content.did
        let nonceMadeAt = nonces.madeAt(content.nonce)
        let (party, keys, isOfBefore) = try await party(did, nonceMadeAt: nonceMadeAt, call)
        let renewal = try await prover(unverified, of: party, call)
        guard StrictJSON.same(content.issuer, iss), content.method == "POST",
            StrictJSON.same(content.url, iss + call.path), content.bodyHash == SigningHash(sha256: body)
        else { throw SigningRefusal(.badProof) }
        guard let madeAt = nonceMadeAt, !isOfBefore else { throw SigningRefusal(.useNonce) }
        guard try await realm.attempts.call("signing:call:\(did)", limit: 120, window: 60) else {
            throw SigningRefusal(.rateLimited, retryAfter: 60)
        }
        let plaintext = try await opened(body, sender: did.text)
        return DeviceRequest(
            party: party, did: did, plaintext: plaintext, hash: .request(proof),
            proof: SpentProof(jti: content.jti, did: did), nonceMadeAt: madeAt, now: now, address: address,
            renewal: renewal, keys: keys)
    }

    /// The calls in which a key of a password slot has signed something.
    private static let callsWithKeys: Set<DeviceCall> = [.confirmEvaluation, .startChange, .commitChange]

    /// Whose call it is, its keys where the call needs them, and whether its nonce may have been made before a restore:
    /// all are looked up at once.
    private func party(
        _ did: SigningID, nonceMadeAt: Int64?, _ call: DeviceCall
    ) async throws -> (party: DeviceRequest.Party, keys: [SigningKeyRow]?, isOfBefore: Bool) {
        var queries = [ContainerSQL.container(did, issuer: iss)]
        if Self.callsWithKeys.contains(call) { queries.append(ContainerSQL.keys(of: did)) }
        let count = queries.count
        if let nonceMadeAt { queries.append(SigningNonces.restore(after: nonceMadeAt)) }
        let rows = try await store.together(queries)
        let keys: [SigningKeyRow]? = count == 1 ? nil : try (rows.dropFirst().first ?? []).map(SigningKeyRow.init)
        let isOfBefore = rows.dropFirst(count).contains { !$0.isEmpty }
        if let container = try rows.first?.first.map(SigningContainerRecord.init) {
            let isForgotten = container.endedAt.map { now - $0 > DeviceRequest.memory } ?? false
            guard !isForgotten else { throw SigningRefusal(.unknownContainer) }
            return (.container(container), keys, isOfBefore)
        }
        guard let enrolment = try await enrolments.find(did) else { throw SigningRefusal(.unknownContainer) }
        return (.enrolment(enrolment), keys, isOfBefore)
    }

    /// Verifies who proves a call: the device key, or from `complete` of a renewal on for `confirm` and `status` the
    /// new one.
    ///
    /// - Returns: the renewal whose new device key has signed.
    /// - Throws: ``SigningRefusal``: `bad_proof`; `key_retired` for a device key that a renewal has replaced.
    private func prover(
        _ proof: UnverifiedMessage<CallProof>, of party: DeviceRequest.Party, _ call: DeviceCall
    ) async throws -> SigningRenewalRecord? {
        if (try? proof.verified(with: realm.deviceKeys.key(party.deviceJWK))) != nil { return nil }
        guard case .container(let container) = party else { throw SigningRefusal(.badProof) }
        func hasSigned(_ jwk: String) -> Bool {
            (try? proof.verified(with: realm.deviceKeys.key(jwk))) != nil
        }
        if call == .status || call == .renewConfirm,
            let renewal = try await enrolments.renewal(of: container.did, at: now),
            let sent = renewal.sent, hasSigned(sent.deviceJWK)
        {
            return renewal
        }
        if let retired = try await devices.retiredDeviceKey(proof.kid, of: container.did), hasSigned(retired.publicJWK)
        {
            throw SigningRefusal(.keyRetired)
        }
        throw SigningRefusal(.badProof)
    }

    /// Decrypts a request's body with the key that it names.
    func opened(_ body: [UInt8], sender: String) async throws -> [UInt8] {
        guard let text = String(validating: body, as: UTF8.self) else { throw SigningRefusal(.invalidRequest) }
        let envelope = try SealedEnvelope(text)
        var known = try await keys.current().opening(envelope.kid)
        if known == nil { known = try await keys.current(fresh: true).opening(envelope.kid) }
        guard let known else { throw SigningRefusal(.unknownKey) }
        return try await envelope.opened(
            with: known.key, named: known.name, content: .request, sender: sender, recipient: iss)
    }

    /// Counts a wrong code of an address.
    func countWrongCode(_ address: String) async throws -> SigningRefusal {
        try await realm.attempts.attempt("signing:code:\(address)", limit: 10, window: 900)
            ? SigningRefusal(.invalidCode) : SigningRefusal(.rateLimited, retryAfter: 900)
    }

    /// Counts a call of an address whose proof was not good; gives another refusal when there were too many.
    private func countBadProof(_ address: String) async throws -> SigningRefusal? {
        try await realm.attempts.call("signing:proof:\(address)", limit: 100, window: 900)
            ? nil : SigningRefusal(.rateLimited, retryAfter: 900)
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
