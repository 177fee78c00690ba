/// Verifies a bundle of evidence, without a server and without a clock: times are compared with those in the messages.
///
/// ```text
/// bounds and formats → identity keys → certificates → key sets → decisions
/// ```
package struct EvidenceVerification {
    let bundle: EvidenceBundle
    var report: EvidenceReport
    var serverKeys: [ServerKey] = []
    var keySets: [KeySet] = []

    /// An online key, and by when a message of it must have been made.
    struct ServerKey {
        let certificate: KeyCertificate
        let latest: Int?
    }

    /// A verified set of keys of the container.
    struct KeySet {
        let record: EnrolmentRecord
        let recordHash: SigningHash
        let enrolment: Enrolment
        let offer: Offer

        func key(_ kid: KeyThumbprint) -> EnrolledKey? { enrolment.keys.first { $0.kid == kid } }

        /// How a key is protected.
        func policy(of key: EnrolledKey) -> ProtectionPolicy? {
            offer.policies.first { StrictJSON.same($0.id, key.policy) }
        }
    }

    /// Judges a bundle by the identity key that the verifier got in another way. Without one, the bundle's last
    /// identity key is taken for the judgement and the report says that nobody trusts it.
    package static func report(on bundle: EvidenceBundle, trust: KeyThumbprint?) -> EvidenceReport {
        var verification = EvidenceVerification(bundle: bundle, report: EvidenceReport(hasTrustAnchor: trust != nil))
        verification.judgeServerKeys(trust: trust)
        verification.judgeEnrolments()
        for (index, transaction) in bundle.transactions.enumerated() {
            verification.judge(transaction, at: "transactions[\(index)]")
        }
        return verification.report
    }

    private init(bundle: EvidenceBundle, report: EvidenceReport) { (self.bundle, self.report) = (bundle, report) }

    // MARK: Checks

    /// Notes a contradiction unless `condition` holds.
    @discardableResult
    mutating func check(_ condition: Bool, _ member: String, _ reason: String) -> Bool {
        if !condition { report.contradicted.append(EvidenceContradiction(member: member, reason: reason)) }
        return condition
    }

    /// The value of `body`; what it throws is a contradiction.
    mutating func attempt<Value>(
        _ member: String, _ body: @autoclosure () throws(SigningProtocolError) -> Value
    ) -> Value? {
        do {
            return try body()
        } catch {
            check(false, error.member.map { "\(member).\($0)" } ?? member, error.detail)
            return nil
        }
    }

    /// A message of the server, signed by a certified key within its time.
    mutating func serverMessage<Content: ServerContent>(
        _ compact: String, _ member: String, as type: Content.Type = Content.self
    ) -> SignedMessage<Content>? {
        guard let message = attempt(member, try UnverifiedMessage<Content>(compact)) else { return nil }
        let keys = serverKeys.filter { $0.certificate.use == .sig && $0.certificate.jwk.thumbprint == message.kid }
        guard check(!keys.isEmpty, member, "The key that signed it is not certified by the trusted identity key.")
        else { return nil }
        let time = message.content.madeAt ?? 0
        guard let key = keys.first(where: { $0.certificate.covers(time) && $0.latest.map { time <= $0 } ?? true })
        else {
            check(
                false, "\(member).iat", "It was not made within the time of the certificate of the key that signed it.")
            return nil
        }
        guard let verified = attempt(member, try message.verified(with: key.certificate.jwk)) else { return nil }
        guard check(StrictJSON.same(verified.content.issuer, bundle.issuer), "\(member).iss", "It is another issuer's.")
        else { return nil }
        return verified
    }
}
