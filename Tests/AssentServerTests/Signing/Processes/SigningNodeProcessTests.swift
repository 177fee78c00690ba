#if PostgreSQL && os(Linux)
import AssentCore
import AssentSigningProtocol
import AssentStore
import Foundation
import SigningTesting
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite(
    "Devices of two processes of assent serve on one database",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct SigningNodeProcessTests {
    /// What a call was answered with: `nil` for success, the refusal's code, or `lost`.
    private static func outcome(_ body: () async throws -> Void) async -> String? {
        do {
            try await body()
            return nil
        } catch let refusal as TestRefusal {
            return refusal.code
        } catch {
            return "lost"
        }
    }

    @Test("Of a hundred numbers in parallel at both nodes exactly one is compared", arguments: [false, true])
    func numbers(killing: Bool) async throws {
        try await SigningNodes.run(2) { world in
            for _ in 0..<(Soak.isOn ? 20 : 3) {
                let (device, container, pin) = try await world.enrolled()
                device.repeats.withLock { $0 = { _ in false } }
                let (txn, number) = try await world.create("numbered")
                let document = try await device.fetch(txn, container)
                let opened = try #require(try await pin.open("2580"))
                device.keys.withLock { $0["payments"] = opened.key }
                var bodies: [DecideBody] = []
                for tried in 0..<100 {
                    let typed = tried < 10 ? "0\(tried)" : "\(tried)"
                    let decision = try device.decision(document, status: "accept", number: typed, unl: try opened.unl)
                    bodies.append(try await device.signed(decision, label: "payments"))
                }
                let victim = killing ? try await world.node(0).process : nil
                let outcomes = await withTaskGroup(of: String?.self) { [bodies] group in
                    for (index, body) in bodies.enumerated() {
                        group.addTask {
                            await SigningNodes.$index.withValue(index % 2) {
                                if index == 40 { victim?.signal(SIGKILL) }
                                return await Self.outcome { _ = try await device.decide(body, container) }
                            }
                        }
                    }
                    return await group.reduce(into: [String?]()) { $0.append($1) }
                }
                let compared = outcomes.count { $0 == nil || $0 == "match_wrong" }
                let known: Set = ["match_wrong", "match_used", "tx_failed", "already_decided", "lost"]
                #expect(outcomes.allSatisfy { $0 == nil || known.contains($0 ?? "") }, "\(outcomes)")
                #expect(compared == 1 || (killing && compared == 0), "\(outcomes)")
                try await check(txn, number, world)
                _ = try await world.ask("POST", "containers/\(container.did)", ["action": "revoke"])
            }
        }
    }

    /// One claim at most, and the state is what comparing that number means.
    private func check(_ txn: SigningID, _ number: String?, _ world: SigningNodes) async throws {
        let database = try await world.openDatabase()
        let rows = try await database.run(
            .read("SELECT state, match_by FROM signing_transactions WHERE txn = \(txn.text)"))
        let decided = try await database.run(
            .read("SELECT dh FROM signing_decisions WHERE txn = \(txn.text)")
        ).map { try $0.text("dh") }
        let row = try #require(rows.first)
        let state = try row.text("state")
        #expect((state == "APPROVED") == (decided == [try row.optionalText("match_by") ?? "-"]), "\(state) \(decided)")
        // A node that was killed between the claim and the comparison leaves it open, with its number used.
        #expect(["APPROVED", "FAILED", "PENDING"].contains(state) && decided.count <= 1)
        try await database.close()
    }

    @Test("Of a hundred unlocks in parallel, with a node that is killed among them, five are evaluated and no more")
    func unlocks() async throws {
        try await SigningNodes.run(2) { world in
            for round in 0..<(Soak.isOn ? 20 : 3) {
                let (device, container, pin) = try await world.enrolled()
                device.repeats.withLock { $0 = { _ in false } }
                let kept = pin.kept.withLock { $0 }
                let next = Secret(bytes: device.random.bytes(32))
                let victim = try await world.node(round % 2).process
                let evaluated = await withTaskGroup(of: Int?.self) { group in
                    for index in 0..<100 {
                        group.addTask {
                            await SigningNodes.$index.withValue(index % 2) {
                                if index == round * 5 % 40 { victim.signal(SIGKILL) }
                                // Each is a guess of its own, by a program that keeps the device's ratchet in step.
                                let body = pin.body(kept, next: next, element: kept.publicKey)
                                let reply: Evaluation? = try? await device.ask("slots/unlock", container.did, body)
                                return reply?.n
                            }
                        }
                    }
                    return await group.reduce(into: [Int]()) { all, n in if let n { all.append(n) } }
                }
                #expect(Set(evaluated).count == evaluated.count && evaluated.allSatisfy { (1...5).contains($0) })
                // What is left after the kill gives nobody another one.
                for index in 0..<2 {
                    let code = await SigningNodes.$index.withValue(index) {
                        await Self.outcome {
                            let body = pin.body(kept, next: next, element: kept.publicKey)
                            _ = try await SigningNodes.again {
                                try await device.call("slots/unlock", container.did, body)
                            }
                        }
                    }
                    #expect(code == "locked")
                }
                let slot = try #require(await SigningNodes.again { try await device.status(container.did) }.slots.first)
                #expect(slot.tries == 0 && slot.spare == 15 && slot.state == .locked, "\(slot)")
                let counted = try await audited(container.did, world)
                #expect(counted == (1...5).map { "evaluated \($0)" }, "\(counted)")
                _ = try await world.ask("POST", "containers/\(container.did)", ["action": "revoke"])
            }
        }
    }

    private func audited(_ did: SigningID, _ world: SigningNodes) async throws -> [String] {
        let database = try await world.openDatabase()
        let rows = try await database.run(
            .read("SELECT detail FROM audit WHERE event = 'signing.slot' AND outcome = 'success' ORDER BY position"))
        let notes = try rows.compactMap { row -> (Int, String)? in
            let detail = try JSONValue.parse(row.text("detail"))
            guard detail["did"]?.string == did.text, let n = detail["n"]?.integer else { return nil }
            return (Int(n), "\(detail["step"]?.string ?? "-") \(n)")
        }
        try await database.close()
        return notes.sorted { $0.0 < $1.0 }.map(\.1).filter { $0.hasPrefix("evaluated") }
    }

    @Test("Fifty times the right PIN and then a refusal, with nodes that are killed: never locked, no try lost")
    func declines() async throws {
        try await SigningNodes.run(2) { world in
            let clock = ContinuousClock()
            let begin = clock.now
            // A container may make 120 calls in a minute.
            var devices: [(device: TestDevice, container: TestDevice.Enrolled, pin: TestPIN)] = []
            let rounds = Soak.isOn ? 200 : 50
            for _ in 0..<(rounds / 12) { devices.append(try await world.enrolled()) }
            for round in 0..<rounds {
                let (device, container, pin) = devices[round % devices.count]
                try await SigningNodes.$index.withValue(round % 2) {
                    let txn = try await world.create("payment").txn
                    let document = try await device.fetch(txn, container)
                    async let killed: Void = kill(round, world)
                    let opened = try #require(try await pin.open("2580"))
                    try await killed
                    #expect(opened.evaluation.content.tries == 4 && opened.evaluation.content.spare == 19)
                    let body = try await device.signed(try device.decision(document, status: "deny"), label: nil)
                    #expect(try await device.decide(body, container).content.state == .denied, "round \(round)")
                    let slot = try #require(await device.status(container.did).slots.first)
                    #expect(slot.tries == 5 && slot.spare == 20, "round \(round): \(slot)")
                }
            }
            if Soak.isOn {
                print("\(rounds) refusals, \(world.starts.withLock { $0 } - 2) kills, \(clock.now - begin)")
            }
        }
    }

    /// In every fifth round, while the unlock is on its way: from at once to after some hundred yields.
    private func kill(_ round: Int, _ world: SigningNodes) async throws {
        guard round % 5 == 4 else { return }
        let victim = try await world.node(round % 2).process
        for _ in 0..<(round * 37 % 400) { await Task.yield() }
        victim.signal(SIGKILL)
    }

    @Test(
        "A device that ends between an evaluation and its confirmation has lost that try, as the page says, and no more"
    )
    func unconfirmed() async throws {
        try await SigningNodes.run(2) { world in
            let (device, container, pin) = try await world.enrolled()
            func slot() async throws -> SlotStatus { try #require(await device.status(container.did).slots.first) }
            var lost = 0
            for crashes in [1, 4] {
                for _ in 0..<crashes { #expect(try await pin.unlock("2580") != nil) }
                lost += crashes
                #expect(try await slot().tries == 5 - crashes)
                // The tries come back with the next right PIN, the spare evaluations do not.
                #expect(try await pin.open("2580") != nil)
                #expect(try await slot().tries == 5)
                #expect(try await slot().spare == 20 - lost)
            }
            // As many in a row as the policy's count lock it, until the user authenticates.
            for _ in 0..<5 { _ = try await pin.unlock("2580") }
            #expect(await Self.outcome { _ = try await pin.unlock("2580") } == "locked")
            let unlock: JSONValue = ["action": "unlock", "slot": "signing"]
            #expect(try await world.ask("POST", "containers/\(container.did)", unlock).status == 200)
            #expect(try await pin.open("2580") != nil)
            let after = try await slot()
            #expect(after.tries == 5 && after.spare == 20)
        }
    }
}
#endif
