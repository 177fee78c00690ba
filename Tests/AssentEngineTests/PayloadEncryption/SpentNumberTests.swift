import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Payload encryption: numbers that are spent for all nodes", .enabled(if: TestDatabase.isPostgreSQL))
struct SpentNumberTests {
    private let fixture: TransactionFixture
    private let keys: PayloadKeys
    private let nodes: [PayloadSessions]
    private let secrets: PayloadSecrets

    init() async throws {
        fixture = try await TransactionFixture()
        keys = PayloadKeys(fixture.context)
        nodes = [PayloadSessions(fixture.context, keys: keys), PayloadSessions(fixture.context, keys: keys)]
        let now = fixture.clock.epochSeconds
        let key = try await keys.add(notBefore: now, notAfter: now + 86_400) { _ in .read("SELECT 1 AS one") }
        let stored = Secret(bytes: SystemRandom().bytes(PayloadSecrets.storedLength))
        secrets = try PayloadSecrets(session: nodes[0].makeName(), stored: stored)
        let peer = PayloadPeer(
            role: .app, origin: "https://api.bank.example", client: nil, app: "bank", version: "3.2.0",
            platform: "linux")
        try await nodes[0].keep(secrets, peer: peer, kid: key.kid)
    }

    /// Why a number is refused; `nil` when it is spent now.
    private func refusal(_ number: UInt64, at node: Int = 0) async throws -> PayloadRefusal? {
        do {
            try await nodes[node].spendOnce(
                FrameHead(.request, session: secrets.session, number: number, random: SystemRandom()))
            return nil
        } catch let refusal as PayloadRefusal {
            return refusal
        }
    }

    @Test("Each number is spent once, in whatever order and at whatever node, and those too old to tell never")
    func once() async throws {
        let numbers: [UInt64] = [3, 1, 2, 1024, 4, 1025]
        for (index, number) in numbers.enumerated() {
            #expect(try await refusal(number, at: index % 2) == nil, "\(number)")
            for node in 0...1 { #expect(try await refusal(number, at: node) == .repeated, "\(number)") }
        }
        // 1025 is the highest: 1 is below the window, 2 is its oldest, and 5 was never sent.
        #expect(try await refusal(1) == .repeated)
        #expect(try await refusal(5) == nil)
        #expect(try await refusal(2049) == nil)
        #expect(try await refusal(1025) == .repeated)
        #expect(try await refusal(1026) == nil)
        #expect(try await refusal(1026) == .repeated)
    }

    @Test("The highest number that there is, and a jump over the whole window, are numbers like others")
    func bounds() async throws {
        let highest = UInt64.max
        for number in [1, UInt64(Int64.max), UInt64(Int64.max) + 1, highest - 1023, highest, highest - 1] {
            #expect(try await refusal(number) == nil, "\(number)")
            #expect(try await refusal(number, at: 1) == .repeated, "\(number)")
        }
        #expect(try await refusal(highest - 1022) == nil)
        #expect(try await refusal(highest - 1024) == .repeated)
        #expect(try await refusal(2) == .repeated)
    }

    @Test("Of many who spend one number at once, one does")
    func race() async throws {
        for number: UInt64 in 1...5 {
            let spent = try await withThrowingTaskGroup(of: Bool.self) { group in
                for index in 0..<10 { group.addTask { try await refusal(number, at: index % 2) == nil } }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(spent == 1, "\(number)")
        }
    }

    @Test("However many calls a session makes, the database remembers no more of it")
    func bounded() async throws {
        let counts: SQLStatement = .read(
            """
            SELECT (SELECT count(*) FROM spent_proofs) + (SELECT count(*) FROM payload_sessions) AS rows,
                (SELECT sum(pg_column_size(s.spent) + pg_column_size(s.spent_highest)) FROM payload_sessions s) AS bytes
            """)
        func counted() async throws -> [Int64] {
            let row = try #require(try await fixture.database.run(counts).first)
            return [try row.integer("rows"), try row.integer("bytes")]
        }
        for number: UInt64 in 1...10 { #expect(try await refusal(number) == nil) }
        let before = try await counted()
        for number: UInt64 in 11...60 { #expect(try await refusal(number) == nil) }
        #expect(try await counted() == before)
    }

    @Test("With the session's row, what was spent is gone, and so is the session")
    func lost() async throws {
        #expect(try await refusal(1) == nil)
        _ = try await fixture.database.run(SQLStatement("DELETE FROM payload_sessions"))
        #expect(try await refusal(1) == .unknownSession)
        #expect(try await refusal(2) == .unknownSession)
        #expect(nodes[0].count == 0)
    }
}
