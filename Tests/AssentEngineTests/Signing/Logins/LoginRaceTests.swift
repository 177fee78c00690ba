import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine

/// Each node has connections of its own to the one database.
@Suite("Two nodes on one database that are raced, lose their commits or die: logins, guesses, links")
struct LoginRaceTests {
    /// How often something is raced, by four requests each.
    private static let rounds = Soak.isOn ? 2500 : 60

    /// What becomes of a node's write, by turns.
    private static func fault(_ round: Int, _ request: Int) -> NodeDatabase.Fault {
        let all = NodeDatabase.Fault.allCases
        return all[(round + request) % all.count]
    }

    @Test("29: One evaluation gives one login, whichever node is asked and whatever fails there")
    func evaluations() async throws {
        let world = try await LoginWorld()
        let base = world.signing.base
        let nodes = [world.database, try await TestDatabase.location(base.path).open(clock: base.clock)]
        func made() async throws -> Int64 { try await world.count("sessions", "did IS NOT NULL") }
        for round in 1...Self.rounds {
            let parts = try await world.typed()
            let before = try await made()
            let isFaulty = round % 4 != 1
            let told = try await withThrowingTaskGroup(of: Bool.self) { group in
                for request in 0..<4 {
                    var own = parts
                    if request > 1 { own.jti = SigningID(random: SystemRandom()) }
                    let fault = Self.fault(round, request)
                    let faults = round.isMultiple(of: 2) ? [fault] : [.none, fault]
                    let database = NodeDatabase(nodes[request % 2], isFaulty ? faults : [])
                    let node = try LoginWorld.node(database, of: world.signing)
                    group.addTask { [own] in
                        let tokens = try? await world.logIn(own, on: node)
                        return tokens != nil && !database.isDead
                    }
                }
                return try await group.reduce(into: 0) { count, won in count += won ? 1 : 0 }
            }
            let given = try await made() - before
            #expect(told <= given && given <= 1 && (isFaulty || told == 1), "round \(round): \(told) of \(given)")
            // Whoever had no answer asks again: it was used, or is used now.
            var again = parts
            again.jti = SigningID(random: SystemRandom())
            let refusal = try await world.refusal(again)
            #expect(refusal == (given == 1 ? "invalid_grant unlock_required" : nil), "round \(round)")
            #expect(try await made() == before + 1, "round \(round)")
            base.clock.advance(by: 5)
        }
        try await nodes[1].close()
    }

    @Test("29: No more guesses are evaluated than the server counts, whichever node is asked and whatever fails there")
    func guesses() async throws {
        let fixture = try await SigningStoreFixture()
        let (base, lock) = (fixture.base, SigningStoreFixture.lock)
        let nodes = [base.database, try await TestDatabase.location(base.path).open(clock: base.clock)]
        for round in 1...(Soak.isOn ? 500 : 15) {
            let container = try await fixture.withSlot()
            let evaluated = try await withThrowingTaskGroup(of: Int64?.self) { group in
                for request in 0..<20 {
                    let faults = round.isMultiple(of: 3) ? [] : [Self.fault(round, request)]
                    let database = NodeDatabase(nodes[request % 2], faults)
                    let (store, attempt) = (try fixture.node(database), fixture.attempt(container))
                    group.addTask {
                        let counted = try? await store.slots.count(
                            attempt, of: container, lock: lock, at: fixture.now)
                        return database.isDead ? nil : counted?.n
                    }
                }
                return try await group.reduce(into: [Int64]()) { all, n in if let n { all.append(n) } }
            }
            let most = Int64(lock.max)
            #expect(Set(evaluated).count == evaluated.count && evaluated.allSatisfy { (1...most).contains($0) })
            let counted = try await fixture.slot(container).n
            #expect(counted <= most && evaluated.count <= Int(counted), "round \(round)")
            // What is left is all that there is.
            for _ in 0..<max(0, most - counted) { _ = try await fixture.unlock(container) }
            #expect(try await fixture.refusal(container) == .locked, "round \(round)")
            _ = try await fixture.devices.change(container, .revoke, by: "ana", at: fixture.now)
        }
        try await nodes[1].close()
    }

    @Test("41: One link gives one session, whichever node is asked and whatever fails there")
    func links() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let second = try await fixture.secondNode().context
        let (registered, key) = try await fixture.instance()
        var access: AccessGrant?
        func made() async throws -> Int64 { try await fixture.count("sessions", where: "grant_id IS NOT NULL") }
        for round in 1...Self.rounds {
            if access == nil || round.isMultiple(of: 25) {
                let tokens = try await fixture.userTokens(of: registered.id, key, scope: "openid accounts")
                access = try await fixture.grants.access(token: tokens.accessToken)
            }
            let link = try await fixture.webLink(for: try #require(access))
            let found = try #require(try await fixture.links.find(link))
            let before = try await made()
            let isFaulty = round % 4 != 1
            let told = try await withThrowingTaskGroup(of: Bool.self) { group in
                for request in 0..<4 {
                    let node = request.isMultiple(of: 2) ? fixture.context : second
                    let faults = isFaulty ? [Self.fault(round, request)] : []
                    let database = NodeDatabase(node.database, faults)
                    let links = WebLinks(
                        EngineContext(
                            database: database, clock: node.clock, random: node.random, masterKey: node.masterKey,
                            logger: node.logger))
                    group.addTask {
                        let token = try? await links.use(found)
                        return token != nil && !database.isDead
                    }
                }
                return try await group.reduce(into: 0) { count, won in count += won ? 1 : 0 }
            }
            let given = try await made() - before
            #expect(told <= given && given <= 1 && (isFaulty || told == 1), "round \(round): \(told) of \(given)")
            #expect(try await fixture.links.use(found) == nil || given == 0, "round \(round)")
            #expect(try await made() == before + 1, "round \(round)")
        }
        try await second.database.close()
    }
}
