package import AssentCore
import AssentJOSE
import AssentStore
import Foundation
import Logging

/// A proof that is valid for its request, unless it was used before: nobody knows until it is claimed. It is a class,
/// since it is handed on often.
package final class CheckedProof: Sendable {
    /// The key's RFC 7638 thumbprint, as in a token's `cnf.jkt`.
    package let thumbprint: String

    /// The value of `DPoP-Nonce` for the reply, when it is time for a new one; it is valid from the next request on
    /// (RFC 9449 §8.2).
    package let newNonce: String?

    /// The nonce in it, which is valid here; `nil` when it has none.
    package let nonce: String?

    /// What a handshake of payload encryption is proved by: the claim `pe`.
    let payloadClaim: String?

    /// Whether it has a nonce that is valid here.
    var hasNonce: Bool { nonce != nil }

    /// What it is remembered by.
    fileprivate let name: String

    /// In which time it could be accepted, in milliseconds since 1970.
    fileprivate let window: ClosedRange<Int64>

    /// Whose nonces it may have.
    fileprivate let server: ProofServer

    /// Whether it is remembered among those of journeys.
    fileprivate let isOfJourney: Bool

    fileprivate init(
        _ proof: DPoPProof, nonce: String?, newNonce: String?, window: ClosedRange<Int64>, of presented: PresentedProof
    ) {
        thumbprint = proof.thumbprint
        payloadClaim = proof.payloadClaim
        name = DPoPReplays.name(thumbprint: proof.thumbprint, jti: proof.jti)
        server = presented.server
        isOfJourney = presented.isOfJourney
        (self.nonce, self.newNonce, self.window) = (nonce, newNonce, window)
    }

    fileprivate var insertion: ProofInsertion {
        ProofInsertion(name: name, earliest: window.lowerBound, expiresAt: window.upperBound)
    }
}

/// Whether a proof must have a nonce.
package enum NoncePolicy: Sendable, Hashable {
    /// It need not while its `iat` is fresh.
    case offered
    /// It must.
    case required
}

/// Verifies the proofs of requests (DPoP, RFC 9449 §4.3). All doors of the server ask the same one, so that a proof is
/// good once among them. It is a class, so that a request does not copy it.
package final class SenderProofs: Sendable {
    /// What proofs may be signed with, in the order in which challenges and metadata list them.
    package static let algorithms: [SignatureAlgorithm] = [.es256, .es384, .ps256, .edDSA]

    let context: EngineContext

    /// Where the time comes from.
    package var clock: any WallClock { context.clock }

    private let server: DPoPNonces
    private let gateway: DPoPNonces
    private let replays: DPoPReplays

    /// What remembers the proofs of journeys. Anyone can begin one, and may fill this memory, but not that of the doors
    /// that take a credential.
    private let journeys: DPoPReplays

    /// The headers of the keys that were proved lately.
    private let headers = DPoPHeaders()

    /// A verifier. There is one for a process.
    ///
    /// - Parameters:
    ///   - context: the database and the clock.
    ///   - isDatabaseTimed: whether nodes that share a database say by its server's clock from when on spent proofs are
    ///     remembered, so that no node's wrong clock keeps the others from accepting proofs, or has them accept one
    ///     again. Without it all nodes must have one clock.
    package convenience init(_ context: EngineContext, isDatabaseTimed: Bool = false) {
        self.init(
            context, DPoPReplays(context, isDatabaseTimed: isDatabaseTimed),
            journeys: DPoPReplays(context, isDatabaseTimed: isDatabaseTimed))
    }

    /// Lets nodes that share a database remember spent proofs from now on, before the first one comes, and learns from
    /// when on they do. Parameters as of ``init(_:isDatabaseTimed:)``.
    ///
    /// - Throws: ``StoreError``.
    package static func begin(_ context: EngineContext, isDatabaseTimed: Bool = false) async throws {
        let replays = DPoPReplays(context, isDatabaseTimed: isDatabaseTimed)
        try await replays.begin()
        try await replays.learn()
    }

    init(_ context: EngineContext, _ replays: DPoPReplays, journeys: DPoPReplays) {
        self.context = context
        server = DPoPNonces(context, of: .authorizationServer)
        gateway = DPoPNonces(context, of: .gateway)
        self.replays = replays
        self.journeys = journeys
    }

    /// A new nonce of a server.
    package func nonce(of server: ProofServer) -> String { newNonce(nonces(server)) }

    /// Checks the proof of a request, and remembers nothing. It counts only once ``claim(_:)`` has accepted it.
    ///
    /// - Parameters:
    ///   - presented: what the request says.
    ///   - accessToken: the token that came with the request; `nil` at the token endpoint.
    ///   - tokenDigest: the token's SHA-256 as base64url, for somebody who has it already.
    ///   - policy: whether there must be a nonce.
    /// - Returns: the proof; `nil` when there is no field.
    /// - Throws: ``SenderProofRefusal``.
    package func check(
        _ presented: PresentedProof, accessToken: Secret?, tokenDigest: String? = nil, policy: NoncePolicy = .offered
    ) throws(SenderProofRefusal) -> CheckedProof? {
        guard let field = try presented.field else { return nil }
        let proof: DPoPProof
        do {
            proof = try DPoPProof.verifyUndated(
                field, method: presented.method, uri: presented.url, accessToken: accessToken,
                tokenDigest: tokenDigest, headers: headers)
        } catch {
            context.logger.debug("a DPoP proof was refused", metadata: ["reason": "\(error.code.rawValue)"])
            throw SenderProofRefusal(.invalidProof, error.detail)
        }
        let nonces = nonces(presented.server)
        let madeAt = proof.nonce.flatMap(nonces.madeAt)
        let window = try window(of: proof, nonceMadeAt: madeAt, policy: policy, nonces)
        let isDue = madeAt.map(nonces.isAging) ?? true
        return CheckedProof(
            proof, nonce: madeAt == nil ? nil : proof.nonce, newNonce: isDue ? newNonce(nonces) : nil,
            window: window, of: presented)
    }

    /// Spends a proof. It comes when all else of the request is known to be valid, so that nobody without a code, a
    /// token or a session can fill the memory of spent proofs, and before anything else is spent.
    ///
    /// - Throws: ``SenderProofRefusal`` when it was used before, or may have been; ``StoreError`` when the database
    ///   cannot serve.
    package func claim(_ proof: CheckedProof) async throws {
        try refuse(try await memory(of: proof).claim(proof.insertion, of: proof.thumbprint), proof)
    }

    /// Looks up what a proof was sent for. On a database that nodes share, the same statement spends the proof if what
    /// was found is valid; ``claim(_:found:)`` tells.
    ///
    /// - Throws: ``StoreError``.
    func find(_ lookUp: some ProofFinding, with proof: CheckedProof?) async throws -> FoundWithProof {
        try await (proof.map(memory) ?? replays).find(lookUp, spending: proof?.insertion)
    }

    /// Spends a proof unless the look-up has spent it. As ``claim(_:)``, it comes when all else is known to be valid.
    ///
    /// - Throws: as ``claim(_:)``.
    func claim(_ proof: CheckedProof, found: FoundWithProof) async throws {
        guard !found.isSpent else { return }
        guard memory(of: proof).isShared else { return try await claim(proof) }
        try refuse(try await memory(of: proof).reason(earliest: proof.window.lowerBound), proof)
    }

    /// How a proof is spent in the transaction of what its request does, where that can be; else `nil`, and
    /// ``claim(_:)`` spends it beforehand.
    func spending(_ proof: CheckedProof) -> ProofSpending? {
        let memory = memory(of: proof)
        guard memory.isShared else { return nil }
        return ProofSpending(statement: SQLStatement(proof.insertion.sql(), expecting: .exactly(1))) {
            do {
                try self.refuse(try await memory.reason(earliest: proof.window.lowerBound), proof)
            } catch let refusal as SenderProofRefusal {
                return refusal
            }
            return SenderProofRefusal(.invalidProof, "The proof was used before.")
        }
    }

    private func memory(of proof: CheckedProof) -> DPoPReplays { proof.isOfJourney ? journeys : replays }

    private func refuse(_ claim: DPoPReplays.Claim, _ proof: CheckedProof) throws(SenderProofRefusal) {
        switch claim {
        case .first: break
        case .repeated: throw SenderProofRefusal(.invalidProof, "The proof was used before.")
        case .unknown(let since):
            throw SenderProofRefusal(
                .useNonce(nonces(proof.server).make(since: since)),
                "The proof may have been used before: repeat it with this nonce.")
        }
    }

    /// Forgets the proofs that nobody accepts any more.
    ///
    /// - Throws: ``StoreError``.
    package func purge() async throws {
        try await replays.purge()
        try await journeys.purge()
    }

    private func newNonce(_ nonces: DPoPNonces) -> String { nonces.make(since: context.proofsSince.withLock { $0 }) }

    private func nonces(_ server: ProofServer) -> DPoPNonces {
        switch server {
        case .authorizationServer: self.server
        case .gateway: gateway
        }
    }

    /// In which time a proof could be accepted, by this node or another one, in milliseconds since 1970.
    ///
    /// - Throws: ``SenderProofRefusal`` when that is not now, or the proof lacks the nonce that it must have.
    private func window(
        of proof: DPoPProof, nonceMadeAt madeAt: Int64?, policy: NoncePolicy, _ nonces: DPoPNonces
    ) throws(SenderProofRefusal) -> ClosedRange<Int64> {
        // A nonce tells the time better than the client's clock, which may be wrong by hours.
        if let madeAt { return madeAt...(madeAt + DPoPNonces.lifetime + DPoPNonces.difference) }
        guard policy == .offered else {
            throw SenderProofRefusal(
                .useNonce(newNonce(nonces)),
                proof.nonce == nil ? "The proof needs a nonce." : "The proof's nonce is not valid here any more.")
        }
        guard proof.nonce == nil else {
            throw SenderProofRefusal(.useNonce(newNonce(nonces)), "The proof's nonce is not valid here any more.")
        }
        do {
            try proof.checkTime(clock: context.clock)
        } catch {
            throw SenderProofRefusal(.useNonce(newNonce(nonces)), "The proof's iat is not near the server's time.")
        }
        let issuedAt = Int64(proof.issuedAt.timeIntervalSince1970 * 1000)
        let (leeway, age) = (Int64(DPoPProof.leeway) * 1000, Int64(DPoPProof.maximumAge) * 1000)
        return (issuedAt - leeway - DPoPNonces.tolerance)...(issuedAt + age + DPoPNonces.difference)
    }
}
