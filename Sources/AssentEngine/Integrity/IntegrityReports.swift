import AssentCore
import AssentStore

/// Takes what apps say that their probes have found, and writes it into the audit log as the client's word.
package struct IntegrityReports: Sendable {
    /// The most reports of one address in a minute, and those of one installation.
    package static let perAddress: Int64 = 10

    /// The most reports of a realm in a minute, since anybody can send some. Those that prove an installation's key
    /// have as many of their own, so that nobody else silences them.
    package static let perRealm: Int64 = 300

    /// The same in a day (UTC): no audit record is ever deleted by the server.
    package static let perDay: Int64 = 20_000

    private let context: EngineContext
    private let perDay: Int64

    /// The reports to a context's audit log, at most so many in a day.
    package init(_ context: EngineContext, perDay: Int64 = IntegrityReports.perDay) {
        (self.context, self.perDay) = (context, perDay)
    }

    /// Takes a report.
    ///
    /// - Parameters:
    ///   - body: the JSON.
    ///   - presented: what the request says about its sender's key.
    ///   - proofs: verifies and spends the proof of an installation.
    ///   - address: where it comes from; `nil` for a client without an address.
    ///   - configuration: that of the realm.
    /// - Returns: the value of `DPoP-Nonce`, where there is one.
    /// - Throws: ``OAuthError``: `invalid_request` for what is not a report, `invalid_client` for an installation or an
    ///   app that does not exist; ``SenderProofRefusal`` for an installation's report without its proof;
    ///   ``EngineError`` `tooManyRequests`; ``StoreError``.
    package func take(
        _ body: [UInt8], _ presented: PresentedProof, by proofs: SenderProofs, at address: String?,
        in configuration: OAuthProviderConfiguration
    ) async throws -> String? {
        let realm = configuration.realm
        let report = try IntegrityReport(body: body)
        let app = configuration.apps[report.app]
        guard app != nil || configuration.clients[report.app] != nil else { throw Self.unknown }
        if let address { try await count("integrity:\(realm):\(address)", limit: Self.perAddress) }
        var checked: CheckedProof?
        if let client = report.client {
            let proof = try proof(
                of: report, presented, proofs,
                configuration.noncePolicy(of: app?.client ?? configuration.client(report.app)))
            let registered = try await context.database.run(
                .read(
                    """
                    SELECT key_thumbprint FROM client_instances
                    WHERE id = \(client) AND realm = \(realm) AND app = \(report.app)
                        AND expires_at > \(context.clock.epochSeconds)
                    """)
            ).first?.text("key_thumbprint")
            guard let registered, ConstantTime.equal(registered, proof.thumbprint) else { throw Self.unknown }
            try await proofs.claim(proof)
            try await count("integrity:\(realm):\(client)", limit: Self.perAddress)
            checked = proof
        }
        let all = checked == nil ? "integrity:\(realm)" : "integrity:\(realm):proved"
        try await count(all, limit: Self.perRealm)
        try await count(all + ":day", limit: perDay, window: 86_400)
        try await AuditLog(context).write(
            AuditRecord(
                .integrityReport, .success, realm: realm,
                detail: JSONObject(omittingNil: [
                    "said": "by the client", "app": .string(report.app), "version": .string(report.version),
                    "platform": .string(report.platform), "client": report.client.map(JSONValue.string),
                    "findings": report.told,
                ])))
        return checked?.newNonce
    }

    /// The proof, for these very bytes. It is spent later.
    private func proof(
        of report: IntegrityReport, _ presented: PresentedProof, _ proofs: SenderProofs, _ policy: NoncePolicy
    ) throws -> CheckedProof {
        guard let proof = try proofs.check(presented, accessToken: nil, policy: policy) else {
            throw SenderProofRefusal(.invalidProof, "The report has no proof of the installation's key.")
        }
        guard let claim = proof.payloadClaim, ConstantTime.equal(claim, report.claim) else {
            throw SenderProofRefusal(.invalidProof, "The proof is not for this report.")
        }
        return proof
    }

    private func count(_ counter: String, limit: Int64, window: Int64 = 60) async throws {
        guard try await AttemptCounter(context).attempt(counter, limit: limit, window: window) else {
            throw EngineError(.tooManyRequests, "Too many reports. Try again later.")
        }
    }

    private static var unknown: OAuthError { OAuthError(.invalidClient, "There is no such app, or installation.") }
}
