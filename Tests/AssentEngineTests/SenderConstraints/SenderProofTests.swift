import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Proofs of a sender's key")
struct SenderProofTests {
    private static let url = "https://am.example/am/oauth2/access_token"
    private static let key = Result { try SoftwareSigningKey.generate(.es256) }

    private static func made(
        _ fixture: TransactionFixture, nonce: String? = nil, at seconds: TimeInterval = 0
    ) async throws -> String {
        try await DPoPProof.make(
            method: "POST", uri: url, nonce: nonce, key: key.get(),
            clock: ManualClock(fixture.clock.now.addingTimeInterval(seconds)))
    }

    private static func verify(
        _ proofs: SenderProofs, _ fields: [String], at server: ProofServer = .authorizationServer,
        policy: NoncePolicy = .offered
    ) async throws -> SenderProof? {
        try await proofs.verify(fields, method: "POST", url: url, accessToken: nil, at: server, policy: policy)
    }

    /// The code of the refusal; `nil` when the proof was accepted.
    private static func refusal(
        _ proofs: SenderProofs, _ fields: [String], at server: ProofServer = .authorizationServer,
        policy: NoncePolicy = .offered
    ) async throws -> String? {
        do {
            _ = try await verify(proofs, fields, at: server, policy: policy)
            return nil
        } catch let refusal as SenderProofRefusal {
            return refusal.code.name
        }
    }

    @Test("Without a field there is no proof, and of two none is looked at")
    func fields() async throws {
        let fixture = try await TransactionFixture()
        let proofs = SenderProofs(fixture.context)
        #expect(try await Self.verify(proofs, []) == nil)
        let proof = try await Self.made(fixture, nonce: proofs.nonce(of: .authorizationServer))
        #expect(try await Self.refusal(proofs, [proof, proof]) == "invalid_dpop_proof")
        #expect(try await Self.refusal(proofs, [proof]) == nil)
    }

    @Test("dpop-negative-tests: a proof is accepted once, also after its nonce has become old")
    func once() async throws {
        let fixture = try await TransactionFixture()
        let proofs = SenderProofs(fixture.context)
        let proof = try await Self.made(fixture, nonce: proofs.nonce(of: .authorizationServer))
        #expect(try await Self.refusal(proofs, [proof]) == nil)
        try await proofs.purge()
        #expect(try await Self.refusal(proofs, [proof]) == "invalid_dpop_proof")
        fixture.clock.advance(by: 239)
        try await proofs.purge()
        #expect(try await Self.refusal(proofs, [proof]) == "invalid_dpop_proof")
        fixture.clock.advance(by: 1)
        #expect(try await Self.refusal(proofs, [proof]) == "use_dpop_nonce")
    }

    @Test("A proof is accepted once under contention")
    func contention() async throws {
        let fixture = try await TransactionFixture()
        let proofs = SenderProofs(fixture.context)
        let proof = try await Self.made(fixture, nonce: proofs.nonce(of: .authorizationServer))
        let accepted = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<16 { group.addTask { try await Self.refusal(proofs, [proof]) == nil } }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(accepted == 1)
    }

    @Test("A nonce is one server's only: the gateway's is refused at the authorization server, and the reverse")
    func foreignNonce() async throws {
        let fixture = try await TransactionFixture()
        let proofs = SenderProofs(fixture.context)
        for (own, other) in [(ProofServer.authorizationServer, ProofServer.gateway), (.gateway, .authorizationServer)] {
            let proof = try await Self.made(fixture, nonce: proofs.nonce(of: other))
            #expect(try await Self.refusal(proofs, [proof], at: own) == "use_dpop_nonce")
            #expect(try await Self.refusal(proofs, [proof], at: other) == nil)
        }
    }

    @Test("A nonce with any bit changed, or of another master key, is refused")
    func forgedNonce() async throws {
        let fixture = try await TransactionFixture()
        let nonces = DPoPNonces(fixture.context, of: .authorizationServer)
        let nonce = nonces.make()
        #expect(nonces.madeAt(nonce) != nil)
        let bytes = try #require(Base64URL.decode(nonce))
        for bit in 0..<(8 * bytes.count) {
            var changed = bytes
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(nonces.madeAt(Base64URL.encode(changed)) == nil)
        }
        let other = try TransactionFixture.context(fixture.database, clock: fixture.clock, seed: 2)
        #expect(DPoPNonces(other, of: .authorizationServer).madeAt(nonce) == nil)
    }

    @Test("A proof with a wrong iat is accepted with a fresh nonce, and asked for one without")
    func wrongClock() async throws {
        let fixture = try await TransactionFixture()
        let proofs = SenderProofs(fixture.context)
        for seconds in [-3600.0, 3600] {
            #expect(
                try await Self.refusal(proofs, [try await Self.made(fixture, at: seconds)]) == "use_dpop_nonce")
            let nonce = proofs.nonce(of: .authorizationServer)
            let proof = try await Self.made(fixture, nonce: nonce, at: seconds)
            #expect(try await Self.refusal(proofs, [proof]) == nil)
        }
    }

    @Test(
        "ensure-dpopproof-with-iat-10seconds-before-succeeds, ensure-dpopproof-with-iat-10seconds-after-succeeds",
        arguments: [(-60.0, nil), (-61, "use_dpop_nonce"), (-10, nil), (10, nil), (30, nil), (31, "use_dpop_nonce")]
            as [(TimeInterval, String?)])
    func nearClock(seconds: TimeInterval, code: String?) async throws {
        let fixture = try await TransactionFixture()
        let proofs = SenderProofs(fixture.context)
        fixture.clock.advance(by: 300)
        #expect(try await Self.refusal(proofs, [try await Self.made(fixture, at: seconds)]) == code)
    }

    @Test("Where a nonce is required, a proof without one is refused, and the one that it is told works")
    func required() async throws {
        let fixture = try await TransactionFixture()
        let proofs = SenderProofs(fixture.context)
        fixture.clock.advance(by: 300)
        let bare = try await Self.made(fixture)
        #expect(try await Self.refusal(proofs, [bare], policy: .required) == "use_dpop_nonce")
        #expect(try await Self.refusal(proofs, [bare], policy: .offered) == nil)
        let proof = try await Self.made(fixture, nonce: proofs.nonce(of: .authorizationServer))
        #expect(try await Self.refusal(proofs, [proof], policy: .required) == nil)
    }

    @Test("A new nonce comes with a reply to a proof without one, and when half of its life has passed")
    func newNonce() async throws {
        let fixture = try await TransactionFixture()
        let proofs = SenderProofs(fixture.context)
        fixture.clock.advance(by: 300)
        #expect(try await Self.verify(proofs, [try await Self.made(fixture)])?.newNonce != nil)
        let nonce = proofs.nonce(of: .authorizationServer)
        #expect(try await Self.verify(proofs, [try await Self.made(fixture, nonce: nonce)])?.newNonce == nil)
        fixture.clock.advance(by: 120)
        let renewed = try await Self.verify(proofs, [try await Self.made(fixture, nonce: nonce)])?.newNonce
        #expect(renewed == proofs.nonce(of: .authorizationServer))
    }

    @Test("After a start, or a crash of the database, a proof that may have been used before needs a new nonce")
    func afterCrash() async throws {
        let fixture = try await TransactionFixture()
        let before = SenderProofs(fixture.context)
        let proof = try await Self.made(fixture, nonce: before.nonce(of: .authorizationServer))
        #expect(try await Self.refusal(before, [proof]) == nil)
        fixture.clock.advance(by: 1)
        if TestDatabase.isPostgreSQL {
            _ = try await fixture.context.database.run(SQLStatement("DELETE FROM spent_proofs"))
        }
        let after = SenderProofs(fixture.context)
        #expect(try await Self.refusal(after, [proof]) == "use_dpop_nonce")
        #expect(try await Self.refusal(after, [try await Self.made(fixture)]) == "use_dpop_nonce")
        let fresh = try await Self.made(fixture, nonce: after.nonce(of: .authorizationServer))
        #expect(try await Self.refusal(after, [fresh]) == nil)
        fixture.clock.advance(by: 300)
        #expect(try await Self.refusal(after, [try await Self.made(fixture)]) == nil)
    }

    @Test("On a database that nodes share, a proof that is raced over both is accepted once")
    func twoNodes() async throws {
        guard TestDatabase.isPostgreSQL else { return }
        let fixture = try await TransactionFixture()
        let nodes = [SenderProofs(fixture.context), SenderProofs(fixture.context)]
        for _ in 0..<10 {
            let proof = try await Self.made(fixture, nonce: nodes[0].nonce(of: .authorizationServer))
            let codes = try await withThrowingTaskGroup(of: String?.self) { group in
                for index in 0..<20 { group.addTask { try await Self.refusal(nodes[index % 2], [proof]) } }
                return try await group.reduce(into: [String?]()) { $0.append($1) }
            }
            #expect(codes.count { $0 == nil } == 1)
            #expect(codes.allSatisfy { $0 == nil || $0 == "invalid_dpop_proof" })
        }
    }
}
