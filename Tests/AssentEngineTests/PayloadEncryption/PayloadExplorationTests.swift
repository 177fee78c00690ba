import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine

/// Tries every combination of a fault at the row of a session with crashes of two nodes, the loss of the table, a
/// number far ahead and copies of a message in between, on the real engine and a real database. With a SQLite file
/// there is one process: the second node is a stranger then, and a crash ends the session.
@Suite("38: One sealed message, two nodes, and every way in which a node or the table can be lost")
struct PayloadExplorationTests {
    private typealias Fault = NodeDatabase.Fault

    /// What happens between two deliveries.
    private enum Event: CaseIterable {
        case nothing
        case firstCrashes, secondCrashes
        /// A crash of the database has emptied its unlogged tables.
        case tableIsLost
        /// A message so far ahead that the window has nothing of the others.
        case farAhead
        /// Both nodes tell the database what they have used, and learn what is gone.
        case look
    }

    /// What is broken on purpose, so that this can be seen to find it.
    private enum Break {
        case nothing
        /// No node takes the number in the row.
        case row
        /// One that has lost a session makes it anew from its secrets, with nothing spent.
        case restored
    }

    private struct Step {
        let event: Event
        /// Which node gets the copy after that.
        let node: Int
    }

    private struct Case: CustomStringConvertible {
        /// What happens at the first node when it takes the number in the row.
        let fault: Fault
        /// Whether the second node gets a copy right before that.
        let isRaced: Bool
        let steps: [Step]

        var description: String {
            "\(fault)\(isRaced ? ", raced" : ""), \(steps.map { "\($0.event), to \($0.node)" }.joined(separator: ", "))"
        }
    }

    private enum Outcome: Equatable {
        case executed
        case refused(PayloadRefusal)
        case failed
    }

    /// Two nodes and one session in a case.
    private final class Nodes: Sendable {
        private struct State {
            var nodes: [PayloadSessions]
            var executions: [UInt64: Int] = [:]
            var isTableLost = false
            var hasFirstCrashed = false
        }

        private let world: PayloadExplorationTests
        private let planted: Break
        private let secrets: PayloadSecrets
        private let state: Locked<State>

        var isTableLost: Bool { state.withLock { $0.isTableLost } }
        var hasFirstCrashed: Bool { state.withLock { $0.hasFirstCrashed } }

        func executions(_ number: UInt64) -> Int { state.withLock { $0.executions[number, default: 0] } }

        init(_ world: PayloadExplorationTests, first: PayloadSessions, planted: Break) async throws {
            (self.world, self.planted) = (world, planted)
            let stored = Secret(bytes: SystemRandom().bytes(PayloadSecrets.storedLength))
            secrets = try PayloadSecrets(session: first.makeName(), stored: stored)
            state = Locked(State(nodes: [first, world.node()]))
            try await first.keep(secrets, peer: PayloadExplorationTests.peer, kid: world.kid)
        }

        /// Delivers a message, or a copy of it: what the listener does with it, but for the ciphers.
        @discardableResult
        func deliver(_ number: UInt64, to index: Int, isSafe: Bool = false) async -> Outcome {
            let node = state.withLock { $0.nodes[index] }
            let head = FrameHead(.request, session: secrets.session, number: number, random: SystemRandom())
            do {
                _ = try await node.opener(head, origin: PayloadExplorationTests.peer.origin)
                _ = try node.claim(head)
                defer { node.end(head) }
                if !isSafe, planted != .row { try await node.spendOnce(head) }
                state.withLock { $0.executions[number, default: 0] += 1 }
                return .executed
            } catch let refusal as PayloadRefusal {
                return .refused(refusal)
            } catch {
                return .failed
            }
        }

        /// Another process takes a node's place.
        func crash(_ index: Int) async {
            state.withLock { state in
                state.nodes[index] = world.node()
                if index == 0 { state.hasFirstCrashed = true }
            }
            await restore(index)
        }

        func loseTable() async throws {
            state.withLock { $0.isTableLost = true }
            guard TestDatabase.isPostgreSQL else { return }
            _ = try await world.fixture.database.run(SQLStatement("TRUNCATE payload_sessions"))
            await restore(0)
        }

        func look() async throws {
            for node in state.withLock({ $0.nodes }) {
                do {
                    try await node.look()
                } catch {
                    // The fault that is meant for the row: without it the look is the first to meet it.
                    guard planted == .row else { throw error }
                }
            }
        }

        private func restore(_ index: Int) async {
            guard planted == .restored else { return }
            let node = state.withLock { $0.nodes[index] }
            try? await node.keep(secrets, peer: PayloadExplorationTests.peer, kid: world.kid)
        }
    }

    /// A node's way to the database that all nodes share.
    private struct SharedDatabase: SQLDatabase {
        let base: NodeDatabase

        var isShared: Bool { TestDatabase.isPostgreSQL }
        func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await base.run(statement) }
        func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] { try await base.run(statements) }
        func checkHealth() async throws { try await base.checkHealth() }
        func close() async throws {}
    }

    private static let peer = PayloadPeer(
        role: .app, origin: "https://api.bank.example", client: nil, app: "bank", version: "3.2.0", platform: "linux")

    /// The message of which there are copies, and one that is far ahead of it.
    private static let copied: UInt64 = 1
    private static let ahead = copied + NumberWindow.size

    private static let cases: [Case] = {
        let steps = Event.allCases.flatMap { event in [0, 1].map { Step(event: event, node: $0) } }
        return Fault.allCases.flatMap { fault in
            [false, true].flatMap { isRaced in
                steps.flatMap { first in
                    steps.map { Case(fault: fault, isRaced: isRaced, steps: [first, $0]) }
                }
            }
        }
    }()

    private let fixture: TransactionFixture
    private let keys: PayloadKeys
    private let kid: String

    init() async throws {
        fixture = try await TransactionFixture()
        keys = PayloadKeys(fixture.context)
        let now = fixture.clock.epochSeconds
        kid = try await keys.add(notBefore: now, notAfter: now + 86_400) { _ in .read("SELECT 1 AS one") }.kid
    }

    private func node(_ database: NodeDatabase? = nil) -> PayloadSessions {
        let base = database ?? NodeDatabase(fixture.database, [])
        return PayloadSessions(fixture.context.anotherNode(on: SharedDatabase(base: base)), keys: keys)
    }

    @Test("Whatever is lost, an unsafe message runs once at most, and a session that the table has goes on at both")
    func explore() async throws {
        let faults = try await faults(planted: .nothing)
        #expect(faults.isEmpty)
    }

    @Test("Controls: without the row, and with sessions that come back after they were lost, it finds a second run")
    func planted() async throws {
        for planted in TestDatabase.isPostgreSQL ? [Break.row, .restored] : [.restored] {
            let faults = try await faults(planted: planted)
            #expect(faults.contains { $0.hasSuffix("ran 2 times") }, "\(planted)")
        }
    }

    // MARK: - One case

    private func faults(planted: Break) async throws -> [String] {
        var faults: [String] = []
        // A round trip takes longer than a look into memory: each is tried by make soak.
        let stride = TestDatabase.isPostgreSQL && !Soak.isOn ? 7 : 1
        for index in Swift.stride(from: 0, to: Self.cases.count, by: stride) {
            faults += try await run(Self.cases[index], planted: planted)
        }
        return faults
    }

    private func run(_ each: Case, planted: Break) async throws -> [String] {
        let racing = Locked<Nodes?>(nil)
        // The first write keeps the session.
        let database = NodeDatabase(fixture.database, [.none, each.fault]) { write in
            guard write == 1, each.isRaced else { return }
            await racing.withLock { $0 }?.deliver(Self.copied, to: 1)
        }
        let nodes = try await Nodes(self, first: node(database), planted: planted)
        racing.withLock { $0 = nodes }
        let first = await nodes.deliver(Self.copied, to: 0)
        racing.withLock { $0 = nil }
        var faults: [String] = []
        func expect(_ condition: Bool, _ fault: @autoclosure () -> String) {
            if !condition { faults.append("\(each): \(fault())") }
        }
        let isHealthy = each.fault == .none && !each.isRaced || !TestDatabase.isPostgreSQL
        expect(!isHealthy || first == .executed, "the first delivery: \(first)")
        if database.isDead { await nodes.crash(0) }
        for step in each.steps {
            try await happen(step.event, nodes)
            await nodes.deliver(Self.copied, to: step.node)
        }
        for number in [Self.copied, Self.ahead] {
            let count = nodes.executions(number)
            expect(count <= 1, "message \(number) ran \(count) times")
        }
        for (what, outcome, expected) in try await afterwards(nodes) {
            expect(outcome == expected, "\(what): \(outcome)")
        }
        return faults
    }

    private func happen(_ event: Event, _ nodes: Nodes) async throws {
        switch event {
        case .nothing: break
        case .firstCrashes: await nodes.crash(0)
        case .secondCrashes: await nodes.crash(1)
        case .tableIsLost: try await nodes.loseTable()
        case .farAhead: await nodes.deliver(Self.ahead, to: 0)
        case .look: try await nodes.look()
        }
    }

    /// New messages: which of them are answered where.
    private func afterwards(_ nodes: Nodes) async throws -> [(what: String, outcome: Outcome, expected: Outcome)] {
        let new = 10 * NumberWindow.size
        let isThere = !nodes.isTableLost && TestDatabase.isPostgreSQL
        var found: [(what: String, outcome: Outcome, expected: Outcome)] = []
        for index in [0, 1] where isThere {
            found.append(
                ("a safe call at \(index)", await nodes.deliver(new, to: index, isSafe: true), .executed))
        }
        if !TestDatabase.isPostgreSQL {
            let isKept = !nodes.hasFirstCrashed
            let safe = await nodes.deliver(new, to: 0, isSafe: true)
            found.append(("a safe call", safe, isKept ? .executed : .refused(.unknownSession)))
            let stranger = await nodes.deliver(new, to: 1, isSafe: true)
            found.append(("a safe call elsewhere", stranger, .refused(.unknownSession)))
            return found
        }
        let unsafe = await nodes.deliver(new + 1, to: 1)
        found.append(("an unsafe call", unsafe, isThere ? .executed : .refused(.unknownSession)))
        let copy = await nodes.deliver(new + 1, to: 0)
        found.append(("its copy", copy, .refused(isThere ? .repeated : .unknownSession)))
        return found
    }
}
