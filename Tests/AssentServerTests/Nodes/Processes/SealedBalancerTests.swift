#if PostgreSQL && os(Linux)
import AssentCore
import AssentPayload
import AssentSigningProtocol
import Foundation
import SigningTesting
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite(
    "Payload encryption behind HAProxy, which sends each connection to another of two processes",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct SealedBalancerTests {
    private struct Call: Sendable {
        let name: String
        let message: SealedChannel.Sealed
        var outcome = SealedCalls.Outcome.unknown
    }

    private static let lanes = 12

    /// Makes unsafe calls, and a safe one beside each, over several connections at once; `onAnswer` hears how many
    /// unsafe ones have ended.
    private func make(
        _ count: Int, _ prefix: String, _ calls: SealedCalls, through gateway: String, by node: ServeProcess,
        nonce: String, onEnd: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws -> [Call] {
        let ended = Locked(0)
        return try await withThrowingTaskGroup(of: [Call].self) { group in
            for lane in 0..<Self.lanes {
                group.addTask {
                    var made: [Call] = []
                    for index in stride(from: lane, to: count, by: Self.lanes) {
                        let kinds = SealedCalls.Kind.allCases
                        let name = "\(prefix)-\(index)"
                        let message = try await calls.message(kinds[index % kinds.count], name, nonce: nonce)
                        var call = Call(name: name, message: message)
                        call.outcome = await calls.send(message, to: gateway, by: node)
                        made.append(call)
                        onEnd(
                            ended.withLock { ended in
                                ended += 1
                                return ended
                            })
                        let isRead = try await calls.read("\(name)-read", from: [gateway], by: node)
                        #expect(isRead, "\(name)")
                    }
                    return made
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    @Test(
        "38: A session of one node is good at both; unsafe calls run once, also when their messages are copied to each node, and one is killed"
    )
    func balanced() async throws {
        try await NodeProcesses.run(editing: { SealedCalls.file($0) }) { world in
            let nodes = [try await world.start(), try await world.start()]
            let (first, last) = (nodes[0], nodes[1])
            try await HAProxy.run(before: nodes) { haproxy in
                let gateway = haproxy.gateway
                let calls = try await SealedCalls(world, at: first, gateway: gateway)
                let nonce = try await calls.nonce(at: first)
                let made = try await make(60, "first", calls, through: gateway, by: first, nonce: nonce)
                #expect(made.allSatisfy { $0.outcome == .executed }, "\(made.map(\.outcome))")
                let connections = try await haproxy.connections(askedBy: first)
                #expect(connections.count == 2 && connections.allSatisfy { $0 > 0 }, "\(connections)")

                // Someone who saw them sends them again, to each node.
                for node in nodes {
                    for call in made {
                        let again = await calls.send(call.message, to: node.gateway ?? "", by: first)
                        #expect(again == .refused(.repeated), "\(call.name): \(again)")
                    }
                }
                #expect(world.executions == Dictionary(uniqueKeysWithValues: made.map { ($0.name, 1) }))

                let more = try await make(60, "second", calls, through: gateway, by: first, nonce: nonce) { ended in
                    if ended == 20 { first.process.signal(SIGKILL) }
                }
                #expect(await first.process.exit() == -SIGKILL)
                try await afterKill(more, calls, at: last, world)
            }
        }
    }

    @Test(
        "28: A sealed payment is advised there, approved at one node, and made once, of sixteen messages that ask for it at once"
    )
    func payment() async throws {
        try await NodeProcesses.run(editing: { SealedCalls.file($0) }) { world in
            let nodes = [try await world.start(), try await world.start()]
            let (first, last) = (nodes[0], nodes[1])
            try await HAProxy.run(before: nodes) { haproxy in
                let gateway = haproxy.gateway
                let calls = try await SealedCalls(world, at: first, gateway: gateway)
                let session = try await first.signIn("ana", password: #require(first.password))
                let advised = try await calls.transfer(session, to: gateway, by: first)
                #expect(advised.status == 401, "\(advised.text)")
                let id = try ServerFixture.transactionID(advised)
                #expect(try await last.approve(id, session: session).status == 200)
                let statuses = try await transfers(16, session, transaction: id, calls, to: gateway, by: first)
                #expect(statuses.count { $0 == 201 } == 1 && statuses.count { $0 == 409 } == 15, "\(statuses)")
                #expect(world.payees == ["Bob"])
                // Each node had some of them.
                let connections = try await haproxy.connections(askedBy: first)
                #expect(connections.count == 2 && connections.allSatisfy { $0 > 0 }, "\(connections)")
            }
        }
    }

    @Test(
        "28: A device enrols through it, and signs a sealed payment, which is made once, whichever node answers what"
    )
    func signing() async throws {
        try await NodeProcesses.run(editing: { SealedSigningDoor.file($0) }) { world in
            let nodes = [try await world.start(), try await world.start()]
            let first = nodes[0]
            try await HAProxy.run(before: nodes) { haproxy in
                let gateway = haproxy.gateway
                let key = try await world.payloadKey()
                let calls = try await SealedCalls(world, at: first, gateway: gateway, key: key)
                let door = try await SealedSigningDoor(key, at: haproxy.server, by: first)
                let session = try await door.signIn("ana", password: #require(first.password))
                let (device, container) = try await door.enrolled(session: session)

                let advised = try await calls.transfer(session, to: gateway, by: first)
                #expect(advised.status == 401, "\(advised.text)")
                let id = try ServerFixture.transactionID(advised)
                let page = try await door.approval(of: id, session: session)
                let asked = try await device.list(container.did).map(\.txn)
                try #require(asked.count == 1, "\(asked)")
                _ = try await device.approve(asked[0], container)
                #expect(world.payees.isEmpty)
                let approved = try await door.goOn(page, session: session)
                #expect(approved.json["tokenId"]?.string == session, "\(approved.text)")

                let statuses = try await transfers(16, session, transaction: id, calls, to: gateway, by: first)
                #expect(statuses.count { $0 == 201 } == 1 && statuses.count { $0 == 409 } == 15, "\(statuses)")
                #expect(world.payees == ["Bob"])
                // Each node had some of the calls, of the device as of the payment.
                for listener in ["gateway", "server"] {
                    let connections = try await haproxy.connections(of: listener, askedBy: first)
                    #expect(connections.count == 2 && connections.allSatisfy { $0 > 0 }, "\(listener) \(connections)")
                }
            }
        }
    }

    /// Asks for one payment by so many messages at once: the statuses.
    private func transfers(
        _ count: Int, _ session: String, transaction id: String, _ calls: SealedCalls, to gateway: String,
        by node: ServeProcess
    ) async throws -> [Int] {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<count {
                group.addTask { try await calls.transfer(session, transaction: id, to: gateway, by: node).status }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// Each call was answered or is unknown, and nothing that is sent again makes it run twice.
    private func afterKill(
        _ made: [Call], _ calls: SealedCalls, at node: ServeProcess, _ world: NodeProcesses
    ) async throws {
        let outcomes = made.map(\.outcome)
        // The other node's connection to the database may have waited for the killed one's.
        let possible: [SealedCalls.Outcome] = [.executed, .unknown, .refused(.busy), .answered(503)]
        #expect(outcomes.allSatisfy { possible.contains($0) }, "\(outcomes)")
        let lost = made.filter { $0.outcome != .executed }
        #expect(lost.count <= 2 * Self.lanes, "\(lost.count)")
        for call in made {
            let again = await calls.send(call.message, to: node.gateway ?? "", by: node)
            #expect(again != .executed || call.outcome != .executed, "\(call.name)")
        }
        let executions = world.executions
        #expect(executions.values.allSatisfy { $0 == 1 })
        for call in made where call.outcome == .executed { #expect(executions[call.name] == 1, "\(call.name)") }
    }
}
#endif
