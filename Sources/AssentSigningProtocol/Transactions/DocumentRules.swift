/// What a device knows of its container when it judges a document.
package struct DocumentAudience: Sendable {
    package let issuer: String
    package let did: SigningID
    package let sub: String
    /// The container's keys and what they are for.
    package let keys: [KeyThumbprint: SigningKeyUsage]

    /// What a device knows of its container.
    package init(issuer: String, did: SigningID, sub: String, keys: [KeyThumbprint: SigningKeyUsage]) {
        (self.issuer, self.did, self.sub, self.keys) = (issuer, did, sub, keys)
    }
}

extension TransactionDocument {
    /// Checks what every device checks before it shows a document. Texts, types and effects were checked by the reader.
    /// `asked` is the transaction that the container has asked for; `nil` when the device began it itself.
    ///
    /// - Throws: ``SigningProtocolError`` with `documentRefused`, and the member.
    package func check(for audience: DocumentAudience, txn asked: SigningID?) throws(SigningProtocolError) {
        guard asked.map({ $0 == txn }) ?? (kind == .record) else {
            throw Self.refused("is of another transaction than the device asked for", "txn")
        }
        guard StrictJSON.same(issuer, audience.issuer) else { throw Self.refused("is of another issuer", "iss") }
        guard did == audience.did else { throw Self.refused("is for another container", "aud") }
        guard StrictJSON.same(sub, audience.sub) else { throw Self.refused("is for another user", "sub") }
        for status in statuses {
            for key in status.keys {
                guard let usage = audience.keys[key] else {
                    throw Self.refused("names a key that is not the container's own", "statuses.kids")
                }
                guard usage != .transport, usage != .otp else {
                    throw Self.refused("names a key that cannot sign", "statuses.kids")
                }
                guard status.effect != .approve || usage == kind.approvingUsage else {
                    throw Self.refused("would be approved by a key that is not for approving this", "statuses.kids")
                }
            }
        }
        func count(_ effect: DecisionEffect) -> Int { statuses.count { $0.effect == effect } }
        guard count(.approve) >= 1 else { throw Self.refused("has no way to approve", "statuses") }
        guard count(.deny) >= 1 else { throw Self.refused("has no way to refuse", "statuses") }
        guard count(.cancel) <= 1 else { throw Self.refused("has several ways to cancel", "statuses") }
    }

    private static func refused(_ why: String, _ member: String) -> SigningProtocolError {
        SigningProtocolError(.documentRefused, "The document \(why).", member: member)
    }

    /// ``SigningDisplay/texts(status:match:)`` of this document.
    package func displayed(status: DocumentStatus, match: String?) -> [String] {
        SigningDisplay(self).texts(status: status, match: match)
    }

    /// Whether a decision fits this document: what device, server and verifier all check.
    ///
    /// - Returns: the member that does not fit, in the order of the specification; `nil` when all do.
    package func mismatch(with decision: Decision, compact: String, signer: KeyThumbprint) -> String? {
        guard StrictJSON.same(decision.issuer, issuer) else { return "aud" }
        guard decision.did == did else { return "did" }
        guard StrictJSON.same(decision.sub, sub) else { return "sub" }
        guard decision.txn == txn else { return "txn" }
        guard !decision.isBlind else { return "blind" }
        guard decision.nonce == nonce else { return "nonce" }
        guard decision.document == SigningHash.document(compact) else { return "txh" }
        guard let status = status(named: decision.status) else { return "status" }
        guard decision.displayed == SigningHash.displayed(displayed(status: status, match: decision.match)) else {
            return "dsp"
        }
        guard status.effect == decision.effect else { return "effect" }
        guard status.keys.contains(signer) else { return "kid" }
        switch status.reason {
        case .none where decision.reason != nil, .required where decision.reason == nil: return "reason"
        default: break
        }
        guard (decision.match != nil) == (match != nil && status.effect == .approve) else { return "match" }
        return nil
    }
}
