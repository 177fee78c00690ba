#if os(Linux)
import AssentCore
import AssentSigningProtocol
import AssentStore
import Foundation
import SigningTesting
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite("A server that is killed at its write points")
struct SigningKillTests {
    /// What happens at the write point.
    private static let ways = ["before", "torn", "after"]

    /// Where the server is killed: at each write point in each way, or in a short run at some, each in one way.
    private static func place(_ step: Int) -> (point: Int, way: String) {
        let stride = TestDatabase.isPostgreSQL ? 31 : 97
        return (1 + (Soak.isOn ? step / ways.count : step * stride), ways[step % ways.count])
    }

    @Test("Provisioning, unlock, decision and change lose nothing and happen once, wherever the server ends")
    func everywhere() async throws {
        try await SigningNodes.run(switching: true) { world in
            var decided: [SigningID] = []
            var kills = 0
            while true {
                let before = world.starts.withLock { $0 }
                let (point, way) = Self.place(kills)
                try Data("\(point) \(way)".utf8).write(to: URL(fileURLWithPath: world.switchFile))
                decided += try await story(world, at: point)
                if world.starts.withLock({ $0 }) == before { break }
                kills += 1
            }
            // Six calls of the enrolment, three unlocks, the change and three decisions.
            let points = Self.place(kills).point
            #expect(points > (TestDatabase.isPostgreSQL ? 60 : 250) && kills >= 4)
            try await check(decided, world)
            if Soak.isOn { print("\(kills) kills at \(points) write points") }
        }
    }

    /// From the invite to a decision with a new PIN; the device repeats what had no answer.
    private func story(_ world: SigningNodes, at point: Int) async throws -> [SigningID] {
        let (device, container, pin) = try await world.enrolled()
        let first = try await world.create("payment").txn
        let receipt = try await device.approve(first, container, pin, typing: "2580").content
        #expect(receipt.state == .approved && receipt.unlock?.n == 1, "point \(point)")

        let opened = try #require(try await pin.open("2580"))
        let fresh = try await pin.begin(opened, "7391")
        #expect(try await pin.commit(opened, from: 0).slots.first?.generation == 1, "point \(point)")
        pin.kept.withLock { old in
            let (r, next, last) = (old.r, old.next, old.last)
            old = fresh
            (old.r, old.next, old.last) = (r, next, last)
        }
        let second = try await world.create("payment").txn
        let after = try await device.approve(second, container, pin, typing: "7391").content
        #expect(after.unlock?.n == 3 && after.unlock?.generation == 1, "point \(point)")

        // Declined, and the same text again: the same receipt.
        let third = try await world.create("payment").txn
        let document = try await device.fetch(third, container)
        let body = try await device.signed(try device.decision(document, status: "deny"), label: nil)
        let denied = try await device.decide(body, container)
        #expect(try await device.decide(body, container).compact == denied.compact, "point \(point)")

        // A right PIN whose reply was lost was asked for again with the same request, and is not a try.
        let slot = try #require(await device.status(container.did).slots.first)
        #expect(slot.tries == 5 && slot.spare == 20, "point \(point): \(slot)")
        #expect(try await device.status(container.did).pending == 0, "point \(point)")
        let database = try await world.openDatabase()
        let active = try await database.run(.read("SELECT did FROM signing_containers WHERE state = 'ACTIVE'"))
        try await database.close()
        #expect(try active.map { try $0.text("did") } == [container.did.text], "point \(point)")
        _ = try await world.ask("POST", "containers/\(container.did)", ["action": "revoke"])
        return [first, second, third]
    }

    /// What the database has of all stories together.
    private func check(_ decided: [SigningID], _ world: SigningNodes) async throws {
        let database = try await world.openDatabase()
        func rows(_ sql: SQL) async throws -> [SQLRow] { try await database.run(.read(sql)) }
        let decisions = try await rows("SELECT txn FROM signing_decisions").map { try $0.text("txn") }
        #expect(decisions.sorted() == decided.map(\.text).sorted())
        let notes = try await rows(
            "SELECT event, outcome, transaction_id, detail FROM audit WHERE event LIKE 'signing.%'")
        var counts: [String: Int] = [:]
        for note in notes where try note.text("outcome") == "success" {
            let detail = try JSONValue.parse(note.text("detail"))
            let words = try [
                note.text("event"), detail["step"]?.string, detail["did"]?.string,
                note.optionalText("transaction_id") ?? detail["txn"]?.string,
                detail["n"]?.integer.map { "\($0)" },
            ].compactMap(\.self)
            counts[words.joined(separator: " "), default: 0] += 1
        }
        let twice = counts.filter { key, count in
            count > 1 && (key.hasPrefix("signing.decide") || key.hasPrefix("signing.slot evaluated"))
        }
        #expect(twice.isEmpty, "\(twice)")
        let containers = try await rows("SELECT did, state FROM signing_containers")
        #expect(containers.count == decided.count / 3)
        #expect(try containers.allSatisfy { try $0.text("state") == "REVOKED" })
        for container in containers {
            let did = try container.text("did")
            let evaluated = counts.keys.filter { $0.hasPrefix("signing.slot evaluated \(did)") }
            #expect(evaluated.count == 3, "\(evaluated)")
        }
        try await database.close()
    }
}
#endif
