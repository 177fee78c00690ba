#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Approved transactions that are tried at the gateways of two nodes while something goes wrong, and afterwards a look
/// whether each answer was true.
final class ApprovalLedger: Sendable {
    private struct Answers {
        var next = 0
        var granted: [String: Int] = [:]
        var unknown: Set<String> = []
        /// Taken, and said not to be forwarded.
        var unsent: Set<String> = []
        var refused = 0
        var inFlight = 0
        var isResting = false
        var isOver = false
    }

    private let nodes: [ServerFixture]
    private let session: String
    private let answers = Locked(Answers())

    /// More than are tried in any case.
    private static let stocked = 20_000

    /// Tries the approvals of ``stock(at:)`` at these nodes.
    ///
    /// - Parameters:
    ///   - nodes: nodes of the database that has the approvals.
    ///   - session: whose they are.
    init(_ nodes: [ServerFixture], session: String) {
        (self.nodes, self.session) = (nodes, session)
    }

    /// Stocks approvals: one that was asked for and approved as users do it, and what the database makes of that.
    ///
    /// - Returns: the session whose they are.
    static func stock(at node: ServerFixture) async throws -> String {
        let session = try await node.session()
        let approved = try await node.completedTransaction(session: session)
        let table = try #require(try Schema.current.tables().first { $0.name == "transactions" })
        let others = SQL(verbatim: table.columns.map(\.name).filter { $0 != "id" }.joined(separator: ", "))
        _ = try await node.server.context.database.run(
            SQLStatement(
                """
                INSERT INTO transactions (id, \(others)) SELECT 'thing-' || number, \(others)
                FROM transactions, generate_series(1, \(Self.stocked)) AS number WHERE id = \(approved)
                """))
        return session
    }

    /// How many were granted, unknown and refused so far.
    var granted: Int { answers.withLock { $0.granted.count } }
    var unknown: Int { answers.withLock { $0.unknown.count } }
    var refused: Int { answers.withLock { $0.refused } }

    /// Returns when so many more were granted.
    func untilItGrows(by count: Int) async {
        let before = granted
        await until { granted >= before + count }
    }

    /// Returns when it is so.
    func until(_ condition: () -> Bool) async {
        while !condition(), !Task.isCancelled { await Task.yield() }
    }

    /// Runs `body` while no request is on its way: the next ones are all there are.
    func rest(_ body: () -> Void) async {
        answers.withLock { $0.isResting = true }
        await until { answers.withLock { $0.inFlight == 0 } }
        body()
        answers.withLock { $0.isResting = false }
    }

    /// Tries approvals at all nodes until `trouble` has ended and `least` are granted.
    func spend(least: Int, during trouble: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 { group.addTask { await self.spend() } }
            do {
                defer { answers.withLock { $0.isOver = true } }
                try await trouble()
                await until { granted >= least }
            }
            try await group.waitForAll()
        }
    }

    private func spend() async {
        while true {
            let number = answers.withLock { answers -> Int? in
                guard !answers.isOver, answers.next < Self.stocked else { return nil }
                answers.next += 1
                return answers.next
            }
            guard let number else { return }
            await withTaskGroup(of: Void.self) { group in
                for node in nodes { group.addTask { await self.spend("thing-\(number)", at: node) } }
            }
        }
    }

    /// Tries one until there is an answer that says what became of it.
    private func spend(_ id: String, at node: ServerFixture) async {
        while await enter() {
            let reply: Answer
            do {
                reply = try await pay(id, at: node)
            } catch {
                Issue.record("\(error)")
                return leave { _ in }
            }
            let isKnown = reply.status != 503
            switch reply.status {
            case 201: leave { $0.granted[id, default: 0] += 1 }
            case 409: leave { _ in }
            case 503 where reply.json["code"] == "outcomeUnknown": return leave { $0.unknown.insert(id) }
            case 503 where reply.json["transaction"] != nil: return leave { $0.unsent.insert(id) }
            case 503: leave { $0.refused += 1 }
            default:
                Issue.record("\(reply.status) \(reply.text)")
                return leave { _ in }
            }
            if isKnown { return }
            // A call that is refused at once must not take the time of those who bring the server back.
            try? await SystemClock().sleep(until: .now + 0.02)
        }
    }

    private func pay(_ id: String, at node: ServerFixture) async throws -> Answer {
        try await node.send(
            "POST", node.gateway("/nods?_txid=\(id)"), ServerFixture.jsonFields + ServerFixture.session(session),
            text: FixtureBody.transfer)
    }

    /// Waits while the ledger rests. `false` when it is over.
    private func enter() async -> Bool {
        while true {
            let state = answers.withLock { answers -> Bool? in
                guard !answers.isOver else { return false }
                guard !answers.isResting else { return nil }
                answers.inFlight += 1
                return true
            }
            if let state { return state }
            await Task.yield()
        }
    }

    private func leave(_ note: (inout Answers) -> Void) {
        answers.withLock { answers in
            answers.inFlight -= 1
            note(&answers)
        }
    }

    /// Looks at what is there in the end and what the service was sent, and tries everything again that was granted.
    func check() async throws {
        let rows = try await Patience.retry("the transactions that were taken are read") {
            try await nodes[1].rows("SELECT id FROM transactions WHERE state = 'TAKEN' AND id LIKE 'thing-%'")
        }
        let taken = Set(try rows.map { try $0.text("id") })
        let (granted, told) = answers.withLock { ($0.granted, $0.unknown.union($0.unsent)) }
        #expect(granted.filter { $0.value > 1 }.isEmpty, "granted twice")
        #expect(sent.sorted() == granted.keys.sorted(), "what the service was sent, and how often")
        #expect(Set(granted.keys).subtracting(taken).isEmpty, "granted, but not there: it could be spent again")
        #expect(taken.subtracting(granted.keys).subtracting(told).isEmpty, "there, but refused")
        for (number, id) in granted.keys.sorted().enumerated() {
            var again = try await pay(id, at: nodes[number % nodes.count])
            // A busy machine exceeds the short limits also when the trouble is over.
            while again.status == 503, !Task.isCancelled { again = try await pay(id, at: nodes[number % nodes.count]) }
            #expect(again.status == 409, "spent again")
        }
        #expect(sent.count == granted.count)
    }

    /// The transactions that the service was sent, each as often as it was.
    private var sent: [String] {
        nodes.flatMap(\.upstream.requests).flatMap { $0.values("Idempotency-Key") }
    }
}
#endif
