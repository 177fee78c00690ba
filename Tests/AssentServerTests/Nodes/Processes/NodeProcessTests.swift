#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite(
    "Two processes of assent serve on one database",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct NodeProcessTests {
    @Test("Many requests with each of several transactions, at both processes at once: each transaction pays once")
    func takes() async throws {
        try await NodeProcesses.run { world in
            let nodes = [try await world.start(), try await world.start()]
            let session = try await nodes[0].signIn("ana", password: #require(nodes[0].password))
            var ids: [String] = []
            for number in 0..<20 {
                let id = try ServerFixture.transactionID(
                    try await nodes[number % 2].transfer(to: "P\(number)", session: session))
                #expect(try await nodes[(number + 1) % 2].approve(id, session: session).status == 200)
                ids.append(id)
            }
            let requests = Soak.isOn ? 10_000 : 600
            let statuses = try await withThrowingTaskGroup(of: [Int].self) { [ids] group in
                for lane in 0..<40 {
                    group.addTask {
                        var statuses: [Int] = []
                        for request in stride(from: lane, to: requests, by: 40) {
                            // Neighbouring lanes have the same transaction and different nodes.
                            let number = (request / 8) % ids.count
                            let answer = try await nodes[request % 2].transfer(
                                to: "P\(number)", session: session, transaction: ids[number])
                            statuses.append(answer.status)
                        }
                        return statuses
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(statuses.count == requests)
            #expect(statuses.count { $0 == 201 } == ids.count)
            #expect(statuses.allSatisfy { [201, 409].contains($0) })
            #expect(world.payees.sorted() == (0..<20).map { "P\($0)" }.sorted())
        }
    }

    @Test("200 requests at once with one transaction, at two gateways elsewhere that ask two nodes: it pays once")
    func gatewaysElsewhere() async throws {
        try await NodeProcesses.run(editing: GatewayProcess.admitting) { world in
            let nodes = [try await world.start(), try await world.start()]
            let gateways = [try await world.gateway(before: nodes[0]), try await world.gateway(before: nodes[1])]
            let session = try await nodes[0].signIn("ana", password: #require(nodes[0].password))
            let id = try ServerFixture.transactionID(try await gateways[0].transfer(session: session))
            #expect(try await nodes[1].approve(id, session: session).status == 200)
            try await GatewayProcess.race(200, gateways, session: session, transaction: id)
            #expect(world.payees == ["Bob"])
        }
    }

    @Test("A gateway elsewhere and its node are killed while the service works: by the others nothing is paid twice")
    func killedElsewhere() async throws {
        try await NodeProcesses.run(editing: GatewayProcess.admitting) { world in
            let nodes = [try await world.start(), try await world.start()]
            let gateways = [try await world.gateway(before: nodes[0]), try await world.gateway(before: nodes[1])]
            let session = try await nodes[0].signIn("ana", password: #require(nodes[0].password))
            func approved(at gateway: GatewayProcess) async throws -> String {
                let id = try ServerFixture.transactionID(try await gateway.transfer(session: session))
                #expect(try await nodes[1].approve(id, session: session).status == 200)
                return id
            }
            let id = try await approved(at: gateways[0])
            world.upstream.hold()
            let reply = Task { try await gateways[0].transfer(session: session, transaction: id) }
            await world.upstream.waitUntilHeld()
            for process in [gateways[0].process, nodes[0].process] {
                process.signal(SIGKILL)
                #expect(await process.exit() == -SIGKILL)
            }
            _ = try? await reply.value
            await world.upstream.release()
            world.upstream.answer(with: TestUpstream.answering)
            for _ in 0..<3 {
                let again = try await gateways[1].transfer(session: session, transaction: id)
                #expect(again.status == 409 && again.json["outcome"] == ["state": "forwarded"], "\(again.text)")
            }
            #expect(world.payees == ["Bob"])
            // What was not asked yet is as good as ever.
            let other = try await approved(at: gateways[1])
            #expect(try await gateways[1].transfer(session: session, transaction: other).status == 201)
            #expect(world.payees == ["Bob", "Bob"])
        }
    }

    @Test("A node is killed while users pay at both: the other one knows every outcome, and nothing is paid twice")
    func killed() async throws {
        try await NodeProcesses.run { world in
            let nodes = [try await world.start(), try await world.start()]
            let payments = try await Payments.begin(nodes, workers: 6)
            await payments.waitUntilPaid(8)
            nodes[0].process.signal(SIGKILL)
            #expect(await nodes[0].process.exit() == -SIGKILL)
            await payments.waitUntilPaid(payments.paid + 4)
            let attempts = await payments.stop()
            try await check(attempts, at: nodes[1], world)
            // A node that takes its place serves like the others.
            let third = try await world.start()
            try await check(attempts, at: third, world)
        }
    }

    @Test(
        "PostgreSQL crashes while users pay, and is away for a while: 503 until it is back, then both nodes go on by themselves"
    )
    func databaseAway() async throws {
        try await NodeProcesses.run { world in
            let nodes = [try await world.start(), try await world.start()]
            let payments = try await Payments.begin(nodes, workers: 8)
            await payments.waitUntilPaid(20)
            let before = try nodes.map { try $0.memory }
            for round in 1...2 {
                try await offPool { try world.database.stop("immediate") }
                for node in nodes { try await node.wait(untilReady: false) }
                // Each refused request is an answer: nobody waits for the database.
                await payments.waitUntilUnavailable(payments.unavailable + 100)
                if Soak.isOn { try await SystemClock().sleep(until: .now + 60) }
                try await offPool { try world.database.start() }
                for node in nodes { try await node.wait(untilReady: true) }
                await payments.waitUntilPaid(payments.paid + 10 * round)
            }
            let after = try nodes.map { try $0.memory }
            for (after, before) in zip(after, before) { #expect(after - before < 64, "MiB more") }
            if Soak.isOn {
                print("memory of the nodes in MiB: \(before) before, \(after) after two minutes without PostgreSQL")
            }
            let attempts = await payments.stop()
            // Nobody was without an answer.
            #expect(attempts.allSatisfy { $0.status != nil })
            try await check(attempts, at: nodes[1], world)
        }
    }

    /// Asks once more for each payment: those that were paid stay so, the others are paid now or have a known outcome.
    private func check(_ attempts: [Payments.Attempt], at node: ServeProcess, _ world: NodeProcesses) async throws {
        for attempt in attempts {
            let reply = try await node.transfer(
                to: attempt.payee, session: attempt.session, transaction: attempt.transaction)
            switch reply.status {
            case 201: #expect(attempt.status != 201)
            case 409:
                let state = try #require(reply.json["outcome"]?["state"]?.string)
                // The database may have been away when the service answered.
                if attempt.status == 201 { #expect(["answered", "forwarded"].contains(state)) }
            // It was approved for a time that is over.
            case 403: #expect(attempt.status != 201 && !world.payees.contains(attempt.payee))
            default: Issue.record("\(reply.status) \(reply.text)")
            }
        }
        #expect(Set(world.payees).count == world.payees.count)
        let paid = attempts.filter { $0.status == 201 }.map(\.payee)
        #expect(Set(paid).isSubset(of: world.payees))
    }
}
#endif
