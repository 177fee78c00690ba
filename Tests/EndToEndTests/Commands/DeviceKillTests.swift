#if os(Linux)
import AssentCore
import AssentServer
import AssentStore
import Foundation
import TestSupport
import Testing

@testable import AssentCLI

@Suite("A device that is killed at its write points", .timeLimit(.minutes(Soak.isOn ? 60 : 5)))
struct DeviceKillTests {
    private static let pin = "0042"

    private static let settings = """
              devices: 20
              policies:
                pin:
                  mode: assisted
                  kdf: "$scrypt$ln=14,r=8,p=1"
                  password: {minLength: 4}
                  lock: {max: 5, cap: 100, delays: []}
              keys:
                - {usage: sign, label: payments, policy: pin}

        """

    /// What kills a program at a write point.
    private struct Killer {
        let library: String
        let place: String

        init(in directory: String) async throws {
            (library, place) = (directory + "/kill.so", directory + "/switch")
            let source = PythonPeer.folder + "/kill-at-write.c"
            let words = ["clang", "-shared", "-fPIC", "-o", library, source, "-ldl"]
            let made = try await offPool { try FinishedProcess.run("/usr/bin/env", words) }
            try #require(made.status == 0, "\(made.complaints)")
        }

        /// The environment of a program that ends at this point of those below its home.
        func environment(_ point: Int, _ kills: Int, _ program: Program) throws -> [String: String] {
            let way = ["before", "torn", "after"][kills % 3]
            try Data("\(point) \(way)".utf8).write(to: URL(fileURLWithPath: place))
            return ["LD_PRELOAD": library, "KILL_BELOW": program.home, "KILL_AT": place]
        }
    }

    /// As timeout(1) says it, and as we hear it of the program itself.
    private static func isKilled(_ result: Program.Result) -> Bool { [137, -SIGKILL].contains(result.status) }

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
        try running.type([pin, pin])
        return await running.result()
    }

    private static func end(_ page: Program.Running, with enrolled: Program.Result) async throws {
        let digits = try #require(enrolled.output.firstMatch(of: /([0-9]{4}) ([0-9]{4})/)?.output, "\(enrolled)")
        try page.type(["\(digits.1)\(digits.2)"])
        try #require(await page.result().status == 0)
    }

    private static func rows(_ world: DemoWorld, _ sql: SQL) async throws -> [SQLRow] {
        let configuration = world.configuration
        let file = configuration.dataDirectory + "/assent.sqlite"
        let location = configuration.postgreSQL.map(DatabaseLocation.postgresql) ?? .sqlite(path: file)
        let database = try await location.open(clock: SystemClock())
        let rows = try await database.run(.read(sql))
        try await database.close()
        return rows
    }

    @Test(
        "Wherever an enrolment ends, the next try goes on or says that it must begin anew, and there is one container")
    func enrolments() async throws {
        try await DeviceTests.run(with: Self.settings) { world, user, first in
            let killer = try await Killer(in: first.home)
            let client = try String(contentsOfFile: first.clientFile, encoding: .utf8)
            var (point, kills, begun) = (1, 0, 0)
            while true {
                let device = try Program(below: first.home + "/\(point)", client: client)
                var (page, code) = try await Self.invite(user)
                var enrolled = try await Self.enroll(code, device, try killer.environment(point, kills, device))
                let isOver = !Self.isKilled(enrolled)
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
                let active = try await Self.rows(world, "SELECT did FROM signing_containers WHERE state = 'ACTIVE'")
                #expect(active.count == 1, "point \(point)")
                let did = try #require(try active.first?.text("did"))
                let removed = try await device.run(
                    "device", "remove", "--container", did, "--config", device.clientFile)
                #expect(removed.status == 0 && listed.output.contains(did), "point \(point): \(removed.errors)")
                if isOver { break }
                kills += 1
                point += Soak.isOn ? 2 : 23
            }
            #expect(point > 90 && kills > 4 && begun > 0 && begun < kills / 2)
            if Soak.isOn { print("\(kills) kills of \(point) write points; \(begun) had to begin anew") }
        }
    }

    @Test("Wherever an approval with a PIN ends, the payment is made once, and the user is not locked out")
    func approvals() async throws {
        try await DeviceTests.run(with: Self.settings) { world, user, device in
            let killer = try await Killer(in: device.home + "/..")
            let (page, code) = try await Self.invite(user)
            try await Self.end(page, with: try await Self.enroll(code, device))
            var (point, kills, payments) = (1, 0, 0)
            while true {
                let paying = try user.start([
                    "request", "POST", "\(world.endpoints.gateway ?? "")/transfers", "--data",
                    #"{"to":"P\#(point)","amount":"1.00","currency":"EUR"}"#,
                ])
                let line = try await paying.errorLine(with: "Number")
                let number = try #require(line.firstMatch(of: /Number: ([0-9]{2})/)?.output.1)
                func approve(_ environment: [String: String] = [:]) async throws -> Program.Result {
                    let words = ["transactions", "approve", "--number", String(number), "--config", device.clientFile]
                    let running = try device.start(words, environment: environment, typing: true)
                    try running.type(["1", Self.pin])
                    return await running.result()
                }
                let approved = try await approve(try killer.environment(point, kills, device))
                let isOver = !Self.isKilled(approved)
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
                let slot = try #require(try await Self.rows(world, "SELECT * FROM signing_slots").first)
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
            let decided = try await Self.rows(world, "SELECT txn FROM signing_decisions")
            let taken = try await Self.rows(world, "SELECT txn FROM signing_transactions WHERE taken_by IS NOT NULL")
            #expect(decided.count == payments && taken.count == payments)
            if Soak.isOn { print("\(kills) kills of \(point) write points of an approval") }
        }
    }
}
#endif
