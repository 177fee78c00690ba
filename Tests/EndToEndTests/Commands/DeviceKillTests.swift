#if os(Linux)
import AssentCore
import AssentServer
import AssentStore
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("A device that is killed at its write points")
struct DeviceKillTests {
    private static let pin = "0042"
    private static let next = "0039"

    private static let settings = """
              devices: 20
              freshSeconds: 3600
              policies:
                pin:
                  mode: assisted
                  kdf: "$scrypt$ln=14,r=8,p=1"
                  password: {minLength: 4}
                  lock: {max: 5, cap: 100, delays: []}
              keys:
                - {usage: sign, label: payments, policy: pin}

        """

    private static func invite(_ user: Program) async throws -> (page: Program.Running, code: String) {
        let page = try user.start(["device", "invite"], typing: true)
        let line = try await page.line(with: "assent device enroll")
        return (page, try #require(line.split(separator: " ").last.map(String.init)))
    }

    private static func enroll(
        _ code: String, _ device: Program, _ environment: [String: String] = [:]
    ) async throws -> Program.Result {
        let running = try device.start(
            ["device", "enroll", code, "--config", device.clientFile], environment: environment, typing: true)
        // It may have been killed.
        try? running.type([pin, pin])
        try? running.endInput()
        return await running.result()
    }

    private static func end(_ page: Program.Running, with enrolled: Program.Result) async throws {
        let digits = try #require(enrolled.output.firstMatch(of: /([0-9]{4}) ([0-9]{4})/)?.output, "\(enrolled)")
        try page.type(["\(digits.1)\(digits.2)"])
        try page.endInput()
        try #require(await page.result().status == 0)
    }

    @Test(
        "Wherever an enrolment ends, the next try goes on or says that it must begin anew, and there is one container")
    func enrolments() async throws {
        try await DeviceTests.run(with: Self.settings) { world, user, first in
            let killer = try await WriteKiller(in: first.home)
            let client = try String(contentsOfFile: first.clientFile, encoding: .utf8)
            var (point, kills, begun) = (1, 0, 0)
            while true {
                try await world.forgetAttempts()
                let device = try Program(below: first.home + "/\(point)", client: client)
                var (page, code) = try await Self.invite(user)
                var enrolled = try await Self.enroll(code, device, try killer.environment(point, kills, device))
                let isOver = !enrolled.isKilled
                if !isOver {
                    enrolled = try await Self.enroll(code, device)
                    if enrolled.status != 0 {
                        #expect(enrolled.errors.contains("Ask for a new invite and enrol again"), "point \(point)")
                        begun += 1
                        page.interrupt()
                        (page, code) = try await Self.invite(user)
                        enrolled = try await Self.enroll(code, device)
                    }
                }
                try #require(enrolled.status == 0, "point \(point): \(enrolled.errors)")
                try await Self.end(page, with: enrolled)
                let listed = try await device.run("device", "list", "--config", device.clientFile)
                #expect(listed.output.split(separator: "\n").count == 1, "point \(point): \(listed.output)")
                // It is active at the server, and the device may be asked.
                let open = try await device.run("transactions", "list", "--config", device.clientFile)
                #expect(open.status == 0 && open.output.contains("No transaction"), "point \(point): \(open.errors)")
                let active = try await world.rows("SELECT did FROM signing_containers WHERE state = 'ACTIVE'")
                #expect(active.count == 1, "point \(point)")
                let did = try #require(try active.first?.text("did"))
                let removed = try await device.run(
                    "device", "remove", "--container", did, "--config", device.clientFile)
                #expect(removed.status == 0 && listed.output.contains(did), "point \(point): \(removed.errors)")
                if isOver { break }
                kills += 1
                point += Soak.isOn ? 1 : 23
            }
            #expect(point > 90 && kills > 4 && begun > 0 && begun < kills / 2)
            if Soak.isOn { print("\(kills) kills of \(point) write points; \(begun) had to begin anew") }
        }
    }

    @Test("Wherever an approval with a PIN ends, the payment is made once, and the user is not locked out")
    func approvals() async throws {
        try await DeviceTests.run(with: Self.settings) { world, user, device in
            let killer = try await WriteKiller(in: device.home + "/..")
            let (page, code) = try await Self.invite(user)
            try await Self.end(page, with: try await Self.enroll(code, device))
            var (point, kills, payments) = (1, 0, 0)
            while true {
                try await world.forgetAttempts()
                let paying = try user.start([
                    "request", "POST", "\(world.endpoints.gateway ?? "")/transfers", "--data",
                    #"{"to":"P\#(point)","amount":"1.00","currency":"EUR"}"#,
                ])
                let line = try await paying.errorLine(with: "Number")
                let number = try #require(line.firstMatch(of: /Number: ([0-9]{2})/)?.output.1)
                func approve(_ environment: [String: String] = [:]) async throws -> Program.Result {
                    let words = ["transactions", "approve", "--number", String(number), "--config", device.clientFile]
                    let running = try device.start(words, environment: environment, typing: true)
                    // It may have been killed.
                    try? running.type(["1", Self.pin])
                    try? running.endInput()
                    return await running.result()
                }
                let approved = try await approve(try killer.environment(point, kills, device))
                let isOver = !approved.isKilled
                if isOver {
                    try #require(approved.status == 0, "\(approved.errors)")
                } else {
                    // Signed now, or sent again from what was stored: then nothing is open any more.
                    let again = try await approve()
                    #expect([0, 2].contains(again.status), "point \(point): \(again.errors)")
                }
                payments += 1
                let paid = await paying.result()
                #expect(paid.status == 0 && paid.output.contains("P\(point)"), "point \(point): \(paid.errors)")
                let slot = try #require(try await world.rows("SELECT * FROM signing_slots").first)
                let open = try slot.integer("n") - slot.integer("floor")
                let unconfirmed = try slot.integer("unconfirmed")
                // A kill between the evaluation and the stored confirmation is one try; the next right PIN brings the
                // tries back, and what was sent again needs no PIN.
                #expect(open <= 1 && unconfirmed <= kills + 1, "point \(point): \(open) \(unconfirmed)")
                if isOver { break }
                kills += 1
                point += Soak.isOn ? 1 : 13
            }
            #expect(point > 30 && kills > 2)
            let decided = try await world.rows("SELECT txn FROM signing_decisions")
            let taken = try await world.rows("SELECT txn FROM signing_transactions WHERE taken_by IS NOT NULL")
            #expect(decided.count == payments && taken.count == payments)
            if Soak.isOn { print("\(kills) kills of \(point) write points of an approval") }
        }
    }

    /// What the server has counted of a container's PIN.
    private struct Count {
        let evaluations: Int64
        let tries: Int64
        let unconfirmed: Int64
        let generation: Int64
        let isPending: Bool
        let changes: Int
        let confirmed: Int

        init(_ world: DemoWorld, _ did: String) async throws {
            let slot = try #require(
                try await world.rows("SELECT * FROM signing_slots WHERE did = \(did)").first)
            evaluations = try slot.integer("n")
            tries = try slot.integer("n") - slot.integer("floor")
            unconfirmed = try slot.integer("unconfirmed")
            generation = try slot.integer("generation")
            isPending = try slot.optionalInteger("pending_generation") != nil
            confirmed = try await world.rows("SELECT n FROM signing_confirms WHERE did = \(did)").count
            let noted = try await world.rows(
                "SELECT detail FROM audit WHERE event = 'signing.slot' AND outcome = 'success'")
            changes = try noted.count {
                let detail = try JSONValue.parse($0.text("detail"))
                return detail["did"]?.string == did && detail["step"]?.string == "changed"
            }
        }
    }

    /// How changes of a PIN came out that were killed.
    private struct Outcomes {
        var (kept, resumed, changed, lost) = (0, 0, 0, 0)
    }

    @Test("Wherever a change of the PIN ends, one of the two works and the other does not, and a try is lost at most")
    func changes() async throws {
        try await DeviceTests.run(with: Self.settings) { world, user, first in
            let killer = try await WriteKiller(in: first.home)
            let client = try String(contentsOfFile: first.clientFile, encoding: .utf8)
            var (point, kills, outcomes) = (1, 0, Outcomes())
            while true {
                try await world.forgetAttempts()
                let device = try Program(below: first.home + "/\(point)", client: client)
                let desk = DeviceDesk(world: world, user: user, device: device)
                try await desk.enrol(typing: [Self.pin, Self.pin])
                let changing = try device.start(
                    ["device", "pin", "change", "--config", device.clientFile],
                    environment: try killer.environment(point, kills, device), typing: true)
                // It may have been killed.
                try? changing.type([Self.pin, Self.next, Self.next])
                try? changing.endInput()
                let changed = await changing.result()
                let isOver = !changed.isKilled
                if isOver { try #require(changed.status == 0, "\(changed.errors)") }
                try await goOn(desk, after: point, isOver, &outcomes)
                if isOver { break }
                kills += 1
                point += Soak.isOn ? 1 : 13
            }
            #expect(point > 30 && kills > 2 && outcomes.kept > 0 && outcomes.kept < kills)
            // Only between the evaluation and its stored confirmation.
            #expect(outcomes.lost < kills / 2 + 1)
            if Soak.isOn { print("\(kills) kills of \(point) write points of a change: \(outcomes)") }
        }
    }

    /// Tries the new PIN, and then the old one, as somebody does who does not know which of them counts.
    private func goOn(_ desk: DeviceDesk, after point: Int, _ isOver: Bool, _ outcomes: inout Outcomes) async throws {
        let active = try await desk.world.rows("SELECT did FROM signing_containers WHERE state = 'ACTIVE'")
        let did = try #require(try active.first?.text("did"))
        let cut = try await Count(desk.world, did)
        #expect(active.count == 1 && cut.evaluations <= 1 && cut.generation <= 1, "point \(point): \(cut)")

        let (paying, number) = try await desk.pay("1.00")
        let approved = try await desk.onDevice(
            "transactions", "approve", "--number", number, typing: ["1", Self.next, Self.pin])
        try #require(approved.status == 0, "point \(point): \(approved.errors)")
        let paid = await paying.result()
        #expect(paid.status == 0, "point \(point): \(paid.errors)")
        let isNew = !approved.errors.contains("Tries left")
        #expect(isNew || !isOver, "point \(point): \(approved.errors)")
        let after = try await Count(desk.world, did)
        #expect(after.generation == (isNew ? 1 : 0) && after.changes == (isNew ? 1 : 0), "point \(point): \(after)")
        #expect(cut.generation == 0 || isNew, "point \(point)")
        #expect(after.evaluations == cut.evaluations + (isNew ? 1 : 2), "point \(point): \(cut) \(after)")
        #expect(after.tries == 0 && !(isNew && after.isPending), "point \(point): \(after)")
        // An evaluation that nothing confirmed is held against the user once: the wrong try, and one that was cut off.
        let lost = after.unconfirmed - (isNew ? 0 : 1)
        #expect(lost == 0 || (lost == 1 && !isOver), "point \(point): \(after)")
        #expect(Int(after.evaluations) - after.confirmed == Int(after.unconfirmed), "point \(point): \(after)")
        outcomes.lost += Int(lost)
        switch (isNew, cut.generation) {
        case (false, _): outcomes.kept += 1
        case (true, 0): outcomes.resumed += 1
        case (true, _): outcomes.changed += 1
        }
        if isNew {
            let replaced = try await desk.device.run(
                "device", "pin", "change", "--config", desk.device.clientFile, typing: [Self.pin, "0056", "0056"])
            #expect(replaced.status != 0 && replaced.errors.contains("Tries left: 4."), "point \(point): \(replaced)")
        }
        let removed = try await desk.onDevice("device", "remove", "--container", did)
        #expect(removed.status == 0, "point \(point): \(removed.errors)")
    }
}
#endif
