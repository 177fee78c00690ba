import AssentCore
package import AssentPayload
import AssentStore
import Logging

/// Answers handshakes of payload encryption (docs/payload-encryption.md, "Handshake").
package final class PayloadHandshakes: Sendable {
    /// A handshake as it has come.
    package struct Call: Sendable {
        let body: [UInt8]
        let proof: PresentedProof
        let origin: String
        let address: String?

        /// - Parameters:
        ///   - body: the JSON.
        ///   - proof: what the request says about its sender's key.
        ///   - origin: the listener's.
        ///   - address: what limits count by; `nil` for a client without an address.
        package init(body: [UInt8], proof: PresentedProof, origin: String, address: String?) {
            (self.body, self.proof, self.origin, self.address) = (body, proof, origin, address)
        }
    }

    /// What the client gets.
    package struct Answer: Sendable {
        package let result: Result<HandshakeReply, PayloadRefusal>
        /// The value of `DPoP-Nonce`, where there is one.
        package let nonce: String?
    }

    private let context: EngineContext
    private let keys: PayloadKeys
    private let sessions: PayloadSessions
    private let proofs: SenderProofs
    private let versions: SealedVersions
    private let limits = Locked(HandshakeLimits())

    /// There is one in a process, since it counts.
    package init(
        _ context: EngineContext, keys: PayloadKeys, sessions: PayloadSessions, proofs: SenderProofs,
        versions: SealedVersions
    ) {
        (self.context, self.keys, self.sessions, self.proofs) = (context, keys, sessions, proofs)
        self.versions = versions
    }

    /// Answers one. Nothing is agreed on or stored before a device has proved its key, and its proof is spent.
    package func answer(_ call: Call) async -> Answer {
        var nonce: String?
        do {
            let now = context.clock.epochMilliseconds
            guard limits.withLock({ $0.take(call.address, now: now) }) else { throw PayloadRefusal.busy }
            let request = try Self.request(call.body)
            guard !versions.isOff(request.app, version: request.version) else { throw PayloadRefusal.off }
            let handshake = try ServerHandshake(
                request, keys: try await keys.valid(for: request.kid), now: context.clock.now)
            let checked = try await prover(of: request, call.proof)
            nonce = checked?.newNonce
            let made = try handshake.finish(
                prover: checked == nil ? nil : request.client, origin: call.origin, session: sessions.makeName(),
                random: context.random)
            try await sessions.keep(
                made.secrets, peer: request.peer(at: call.origin), kid: request.kid, clientKey: checked?.thumbprint)
            return Answer(result: .success(made.reply), nonce: nonce)
        } catch let refusal as PayloadRefusal {
            return Answer(result: .failure(refusal), nonce: nonce)
        } catch let refusal as SenderProofRefusal {
            return Answer(
                result: .failure(refusal.code.nonce == nil ? .badProof : .useNonce), nonce: refusal.code.nonce)
        } catch {
            context.logger.warning("a handshake could not be answered", metadata: ["error": "\(error)"])
            return Answer(result: .failure(.busy), nonce: nil)
        }
    }

    private static func request(_ body: [UInt8]) throws(PayloadRefusal) -> HandshakeRequest {
        do { return try HandshakeRequest(body: body) } catch { throw error.refusal }
    }

    /// The proof of a device, which is spent; `nil` for an app, whose proof is not read.
    private func prover(of request: HandshakeRequest, _ presented: PresentedProof) async throws -> CheckedProof? {
        guard let client = request.client else { return nil }
        guard let proof = try proofs.check(presented, accessToken: nil),
            let claim = proof.payloadClaim, ConstantTime.equal(claim, request.claim)
        else { throw PayloadRefusal.badProof }
        let registered = try await context.database.run(
            .read("SELECT key_thumbprint FROM client_instances WHERE id = \(client)")
        ).first?.text("key_thumbprint")
        guard let registered, ConstantTime.equal(registered, proof.thumbprint) else { throw PayloadRefusal.badProof }
        try await proofs.claim(proof)
        return proof
    }
}
