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
    private static let otherKey = Result { try SoftwareSigningKey.generate(.es256) }

    /// A verifier of a server that starts now.
    private static func proofs(
        _ context: EngineContext, limit: Int = ReplayMemory.usualLimit, isDatabaseTimed: Bool = false
    ) async throws -> SenderProofs {
        try await SenderProofs.begin(context, isDatabaseTimed: isDatabaseTimed)
        return SenderProofs(
            context, DPoPReplays(context, isDatabaseTimed: isDatabaseTimed, limit: limit),
            journeys: DPoPReplays(context, isDatabaseTimed: isDatabaseTimed, limit: limit))
    }

    private static func made(
        _ fixture: TransactionFixture, nonce: String? = nil, at seconds: TimeInterval = 0,
        by key: Result<SoftwareSigningKey, any Error> = key
    ) async throws -> String {
        try await DPoPProof.make(
            method: "POST", uri: url, nonce: nonce, key: key.get(),
            clock: ManualClock(fixture.clock.now.addingTimeInterval(seconds)))
    }

    private static func verify(
        _ proofs: SenderProofs, _ fields: [String], at server: ProofServer = .authorizationServer,
        policy: NoncePolicy = .offered
    ) async throws -> CheckedProof? {
        let presented = PresentedProof(fields: fields, method: "POST", url: url, server: server)
        guard let proof = try proofs.check(presented, accessToken: nil, policy: policy) else { return nil }
        try await proofs.claim(proof)
        return proof
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

    /// The nonce that a refusal tells the client to take.
    private static func told(_ proofs: SenderProofs, _ proof: String) async throws -> String {
        let refusal = await #expect(throws: SenderProofRefusal.self) { try await verify(proofs, [proof]) }
        return try #require(refusal?.code.nonce)
    }

    @Test("Without a field there is no proof, and of two none is looked at")
    func fields() async throws {
        let fixture = try await TransactionFixture()
        let proofs = try await Self.proofs(fixture.context)
        #expect(try await Self.verify(proofs, []) == nil)
        let proof = try await Self.made(fixture, nonce: proofs.nonce(of: .authorizationServer))
        #expect(try await Self.refusal(proofs, [proof, proof]) == "invalid_dpop_proof")
        #expect(try await Self.refusal(proofs, [proof]) == nil)
    }

    @Test("dpop-negative-tests: a proof is accepted once, also after its nonce has become old")
    func once() async throws {
        let fixture = try await TransactionFixture()
        let proofs = try await Self.proofs(fixture.context)
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

    @Test(
        "Purging goes on until no proof is left that nobody accepts, and keeps from when on the table is complete",
        .enabled(if: TestDatabase.isPostgreSQL))
    func purging() async throws {
        let fixture = try await TransactionFixture()
        let proofs = try await Self.proofs(fixture.context)
        let (now, count) = (fixture.clock.epochMilliseconds, DPoPReplays.batch + 2)
        _ = try await fixture.database.run(
            SQLStatement(
                """
                INSERT INTO spent_proofs (id, expires_at)
                SELECT 'proof' || n, \(now) + (CASE WHEN n = 1 THEN 1 ELSE 0 END) FROM generate_series(1, \(count)) AS n
                """))
        try await proofs.purge()
        let rows = try await fixture.database.run(.read("SELECT id FROM spent_proofs ORDER BY id"))
        #expect(try rows.map { try $0.text("id") } == ["proof1", "since"])
    }

    @Test("A proof is accepted once under contention")
    func contention() async throws {
        let fixture = try await TransactionFixture()
        let proofs = try await Self.proofs(fixture.context)
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
        let proofs = try await Self.proofs(fixture.context)
        for (own, other) in [(ProofServer.authorizationServer, ProofServer.gateway), (.gateway, .authorizationServer)] {
            let proof = try await Self.made(fixture, nonce: proofs.nonce(of: other))
            #expect(try await Self.refusal(proofs, [proof], at: own) == "use_dpop_nonce")
            #expect(try await Self.refusal(proofs, [proof], at: other) == nil)
        }
    }

    @Test("A nonce that is not valid here is refused also where a fresh proof needs none")
    func unneededNonce() async throws {
        let fixture = try await TransactionFixture()
        let proofs = try await Self.proofs(fixture.context)
        let old = proofs.nonce(of: .authorizationServer)
        // By then the server remembers every proof that a clock could let in.
        fixture.clock.advance(by: 600)
        #expect(try await Self.refusal(proofs, [try await Self.made(fixture)]) == nil)
        for nonce in [old, proofs.nonce(of: .gateway), "another"] {
            #expect(
                try await Self.refusal(proofs, [try await Self.made(fixture, nonce: nonce)]) == "use_dpop_nonce")
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
        let proofs = try await Self.proofs(fixture.context)
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
        let proofs = try await Self.proofs(fixture.context)
        fixture.clock.advance(by: 300)
        #expect(try await Self.refusal(proofs, [try await Self.made(fixture, at: seconds)]) == code)
    }

    @Test("Where a nonce is required, a proof without one is refused, and the one that it is told works")
    func required() async throws {
        let fixture = try await TransactionFixture()
        let proofs = try await Self.proofs(fixture.context)
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
        let proofs = try await Self.proofs(fixture.context)
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
        let before = try await Self.proofs(fixture.context)
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
        #expect(try await Self.refusal(after, [fresh]) == "invalid_dpop_proof")
        // For a minute, and for two where iat lies back.
        for (seconds, issued, code) in [
            (59.0, 0.0, "use_dpop_nonce"), (1, 0, nil), (59, -60, "use_dpop_nonce"), (1, -60, nil),
        ] as [(TimeInterval, TimeInterval, String?)] {
            fixture.clock.advance(by: seconds)
            #expect(try await Self.refusal(after, [try await Self.made(fixture, at: issued)]) == code)
        }
    }

    @Test(
        "After a crash of the database a proof is not accepted again whose nonce a node with its clock ahead has made",
        .enabled(if: TestDatabase.isPostgreSQL))
    func clockAhead() async throws {
        let fixture = try await TransactionFixture()
        let served = try #require(try await fixture.database.time())
        func node(_ seconds: Double) throws -> (clock: ManualClock, proofs: SenderProofs) {
            let clock = ManualClock(Date(timeIntervalSince1970: Double(served) / 1000 + seconds))
            let context = try TransactionFixture.context(fixture.database, clock: clock)
            return (clock, SenderProofs(context, isDatabaseTimed: true))
        }
        let (fast, slow) = (try node(25), try node(-20))
        func proof(_ nonce: String) async throws -> String {
            try await DPoPProof.make(
                method: "POST", uri: Self.url, nonce: nonce, key: Self.key.get(), clock: fast.clock)
        }
        // The last crash was an hour ago.
        _ = try await fixture.database.run(
            SQLStatement("INSERT INTO spent_proofs (id, expires_at) VALUES ('since', \(served - 3_600_000))"))
        let spent = try await proof(fast.proofs.nonce(of: .authorizationServer))
        #expect(try await Self.refusal(fast.proofs, [spent]) == nil)
        _ = try await fixture.database.run(SQLStatement("DELETE FROM spent_proofs"))
        for _ in 0..<2 { #expect(try await Self.refusal(fast.proofs, [spent]) == "use_dpop_nonce") }
        // However long that has taken, the clocks are as far apart as before.
        let later = try #require(try await fixture.database.time())
        for node in [fast, slow] { node.clock.advance(by: Double(later - served) / 1000) }
        for node in [fast, slow] {
            #expect(try await Self.refusal(node.proofs, [spent]) == "use_dpop_nonce")
            // What a node gives from then on is accepted at once, by both.
            let nonce = node.proofs.nonce(of: .authorizationServer)
            for other in [fast, slow] { #expect(try await Self.refusal(other.proofs, [try await proof(nonce)]) == nil) }
        }
    }

    @Test(
        "The nonces of a node that starts on a new table are accepted at once",
        .enabled(if: TestDatabase.isPostgreSQL))
    func firstNonce() async throws {
        let fixture = try await TransactionFixture()
        let proofs = try await Self.proofs(fixture.context, isDatabaseTimed: true)
        let served = try #require(try await fixture.database.time())
        fixture.clock.advance(by: Double(served) / 1000 - fixture.clock.now.timeIntervalSince1970)
        let proof = try await Self.made(fixture, nonce: proofs.nonce(of: .authorizationServer))
        #expect(try await Self.refusal(proofs, [proof], policy: .required) == nil)
    }

    @Test(
        "A new table, as in a copy, and a fenced one ask for nonces of their own time",
        .enabled(if: TestDatabase.isPostgreSQL))
    func copies() async throws {
        let fixture = try await TransactionFixture()
        let proofs = SenderProofs(fixture.context)
        for isFenced in [false, true] {
            let nonce = proofs.nonce(of: .authorizationServer)
            let used = try await Self.made(fixture, nonce: nonce)
            if isFenced { #expect(try await Self.refusal(proofs, [used]) == nil) }
            fixture.clock.advance(by: 1)
            if isFenced { _ = try await RestoredDatabase(fixture.context).fence() }
            for proof in [used, try await Self.made(fixture, nonce: nonce), try await Self.made(fixture)] {
                #expect(try await Self.refusal(proofs, [proof]) == "use_dpop_nonce")
            }
            let told = try await Self.made(fixture, nonce: proofs.nonce(of: .authorizationServer))
            #expect(try await Self.refusal(proofs, [told]) == nil)
        }
    }

    @Test(
        "A clock that is set back after a start does not keep proofs out: the nonce that is told is accepted at once",
        arguments: [0.001, 20, 30, 31, 7200] as [TimeInterval])
    func clockSetBack(seconds: TimeInterval) async throws {
        let fixture = try await TransactionFixture()
        fixture.clock.advance(by: seconds)
        let proofs = try await Self.proofs(fixture.context)
        fixture.clock.advance(by: -seconds)
        let nonce = try await Self.told(proofs, try await Self.made(fixture))
        fixture.clock.advance(by: 0.1)
        let proof = try await Self.made(fixture, nonce: nonce)
        #expect(try await Self.refusal(proofs, [proof]) == nil)
        #expect(try await Self.refusal(proofs, [proof]) == "invalid_dpop_proof")
    }

    @Test(
        "A proof that was used, and forgotten when it had expired, is not accepted where the clock is set back",
        .enabled(if: !TestDatabase.isPostgreSQL), arguments: [61, 240, 359] as [TimeInterval])
    func forgottenAndSetBack(seconds: TimeInterval) async throws {
        let fixture = try await TransactionFixture()
        let proofs = try await Self.proofs(fixture.context)
        let used = try await Self.made(fixture, nonce: proofs.nonce(of: .authorizationServer))
        #expect(try await Self.refusal(proofs, [used]) == nil)
        fixture.clock.advance(by: 300)
        try await proofs.purge()
        fixture.clock.advance(by: -seconds)
        let proof = try await Self.made(fixture, nonce: try await Self.told(proofs, used))
        #expect(try await Self.refusal(proofs, [proof]) == nil)
        #expect(try await Self.refusal(proofs, [proof]) == "invalid_dpop_proof")
    }

    @Test(
        "By the clock of the database's server, a table is complete from now on, and never later",
        .enabled(if: TestDatabase.isPostgreSQL))
    func databaseClock() async throws {
        let fixture = try await TransactionFixture()
        let served = try #require(try await fixture.database.time())
        // A node that is two hours ahead writes the row, as after a crash.
        let ahead = ManualClock(Date(timeIntervalSince1970: Double(served) / 1000 + 7200))
        let fast = try TransactionFixture.context(fixture.database, clock: ahead)
        try await SenderProofs.begin(fast, isDatabaseTimed: true)
        let now = ManualClock(Date(timeIntervalSince1970: Double(served) / 1000 + 3600))
        let context = try TransactionFixture.context(fixture.database, clock: now)
        let right = try await Self.proofs(context, isDatabaseTimed: true)
        func proof() async throws -> String {
            let nonce = right.nonce(of: .authorizationServer)
            return try await DPoPProof.make(
                method: "POST", uri: Self.url, nonce: nonce, key: Self.key.get(), clock: now)
        }
        for since in [nil, served + 7_200_000] {
            if let since {
                _ = try await fixture.database.run(
                    SQLStatement("UPDATE spent_proofs SET expires_at = \(since) WHERE id = 'since'"))
                #expect(try await Self.refusal(right, [try await proof()]) == "use_dpop_nonce")
            }
            #expect(try await Self.refusal(right, [try await proof()]) == nil)
        }
    }

    @Test(
        "When the memory is full, the key with the most proofs needs a newer nonce, which works at once, and no other",
        .enabled(if: !TestDatabase.isPostgreSQL))
    func fullMemory() async throws {
        let fixture = try await TransactionFixture()
        let proofs = try await Self.proofs(fixture.context, limit: 4)
        let nonce = proofs.nonce(of: .authorizationServer)
        var used: [String] = []
        for _ in 0..<3 {
            used.append(try await Self.made(fixture, nonce: nonce))
            #expect(try await Self.refusal(proofs, [used[used.count - 1]]) == nil)
        }
        let other = try await Self.made(fixture, nonce: nonce, by: Self.otherKey)
        #expect(try await Self.refusal(proofs, [other]) == nil)
        let told = try await Self.told(proofs, try await Self.made(fixture, nonce: nonce))
        #expect(try await Self.refusal(proofs, [try await Self.made(fixture, nonce: told)]) == nil)
        for proof in used { #expect(try await Self.refusal(proofs, [proof]) == "use_dpop_nonce") }
        let another = try await Self.made(fixture, nonce: nonce, by: Self.otherKey)
        #expect(try await Self.refusal(proofs, [another]) == nil)
        #expect(try await Self.refusal(proofs, [other]) == "invalid_dpop_proof")
    }

    @Test(
        "Who fills the memory of journeys' proofs makes journeys need a nonce, and no door that takes a credential",
        .enabled(if: !TestDatabase.isPostgreSQL))
    func memoryOfJourneys() async throws {
        let fixture = try await TransactionFixture()
        let proofs = try await Self.proofs(fixture.context, limit: 4)
        let nonce = proofs.nonce(of: .authorizationServer)
        func claim(isOfJourney: Bool) async throws -> String? {
            let proof = try await Self.made(fixture, nonce: nonce)
            var presented = PresentedProof(fields: [proof], method: "POST", url: Self.url, server: .authorizationServer)
            presented.isOfJourney = isOfJourney
            let checked = try #require(try proofs.check(presented, accessToken: nil))
            do {
                try await proofs.claim(checked)
                return nil
            } catch let refusal as SenderProofRefusal {
                return refusal.code.name
            }
        }
        for _ in 0..<3 { #expect(try await claim(isOfJourney: false) == nil) }
        for _ in 0..<4 { #expect(try await claim(isOfJourney: true) == nil) }
        for _ in 0..<2 { #expect(try await claim(isOfJourney: true) == "use_dpop_nonce") }
        #expect(try await claim(isOfJourney: false) == nil)
    }

    @Test(
        "On a database that nodes share, a proof that is raced over both is accepted once",
        .enabled(if: TestDatabase.isPostgreSQL))
    func twoNodes() async throws {
        let fixture = try await TransactionFixture()
        let nodes = [try await Self.proofs(fixture.context), try await Self.proofs(fixture.context)]
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
