import AssentCore
import AssentServer
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// The device is the one that was written in Python from the protocol's pages alone; so is the thief.
@Suite("A PIN of a device, and who has what of it")
struct DevicePINTests {
    private static let pin = "0042"
    private static let next = "0039"

    private static func policies(_ mode: String) -> String {
        """
              policies:
                pin: {mode: \(mode), kdf: "$scrypt$ln=14,r=8,p=1", password: {minLength: 4}}
              keys:
                - {usage: sign, label: payments, policy: pin}

        """
    }

    /// A device that has enrolled with the PIN ``pin``, and what its program is told first.
    private struct Enrolled {
        let world: DemoWorld
        let user: Program
        let home: String
        let words: [String]

        func python(_ words: String...) async throws -> String {
            try await DevicePINTests.python(["device"] + self.words + words)
        }

        /// What the program complains of.
        func complaint(_ words: String...) async throws -> String {
            let finished = try await DevicePINTests.finished(["device"] + self.words + words)
            #expect(finished.status == 3, "\(finished.text)")
            return finished.complaints
        }

        func file(_ name: String, _ text: String) throws -> String {
            let path = home + "/" + name
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            return path
        }

        /// The PINs that somebody finds who has this file of the device, and more.
        func thief(_ state: String, _ more: String...) async throws -> JSONValue? {
            let text = try await DevicePINTests.python(["thief", "--state", state, "--space", "43"] + more)
            return try JSONValue.parse(text)["found"]
        }

        /// A copy of what the server has stored, as a backup is.
        func stolenDatabase(_ name: String) async throws -> String {
            #if os(Linux)
            if let database = world.configuration.postgreSQL, let host = database.hosts.first {
                let file = home + "/" + name
                let words = [
                    "--host", host.name, "--port", "\(host.port)", "--username", database.user, "--no-password",
                    "--file", file, database.database,
                ]
                let dumped = try await offPool { try FinishedProcess.run("/usr/bin/pg_dump", words) }
                try #require(dumped.status == 0, "\(dumped.complaints)")
                return file
            }
            #endif
            let path = world.configuration.dataDirectory + "/assent.sqlite"
            // The server goes on writing: copies of its files, made one after the other, need not fit together.
            try await DatabaseLocation.sqlite(path: path).backUp(to: home + "/" + name)
            return home + "/" + name
        }
    }

    private static func python(_ words: [String]) async throws -> String {
        let finished = try await finished(words)
        try #require(finished.status == 0, "\(words): \(finished.text) \(finished.complaints)")
        return finished.text
    }

    private static func finished(_ words: [String]) async throws -> FinishedProcess {
        let tsp = World.package.appendingPathComponent("Tests/Signing/tsp").path
        return try await offPool { try FinishedProcess.run("/usr/bin/python3", [tsp] + words) }
    }

    private static func run(_ mode: String, _ body: (Enrolled) async throws -> Void) async throws {
        try await DeviceTests.run(with: policies(mode)) { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            let (inviting, code) = try await desk.invite()
            let issuer = world.endpoints.server + "/signing/realms/root/realms/alpha"
            let enrolled = Enrolled(
                world: world, user: user, home: device.home,
                words: [
                    "--state", device.home + "/state.json", "--ca", try #require(world.endpoints.authorityFile),
                ])
            let pin = try enrolled.file("pin", Self.pin)
            let shown = try await enrolled.python("enrol", "--code", code, "--iss", issuer, "--pin", pin)
            _ = try await desk.confirm(inviting, shown: shown)
            try await body(enrolled)
        }
    }

    @Test("The command line asks for a new PIN twice, and for the PIN again before it signs a payment")
    func commandLine() async throws {
        try await DeviceTests.run(with: Self.policies("assisted")) { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            let enrolled = try await desk.enrol(typing: ["12", Self.pin, Self.next, Self.pin, Self.pin]).enrolled
            #expect(enrolled.errors.contains("at least 4 characters") && enrolled.errors.contains("not the same"))
            let signed = try await desk.payAndSign(typing: [Self.next, Self.pin]).signed
            #expect(signed.errors.contains("Tries left: 4."), "\(signed.errors)")
        }
    }

    @Test("A wrong PIN signs nothing, the right one does, and a changed one is the only right one afterwards")
    func story() async throws {
        try await Self.run("assisted") { device in
            let made = try await device.python("create", "Pay 200.00 EUR to Bob", "payments")
            let txn = try #require(try JSONValue.parse(made)["txn"]?.string)
            let (wrong, right) = (try device.file("wrong", "1593"), device.home + "/pin")
            let refused = try await device.complaint(
                "decide", "--pin", wrong, "--", txn, "accept")
            #expect(refused.contains("the password is wrong"))
            #expect(try await device.python("status").contains(#""tries": 4"#))
            _ = try await device.python("decide", "--pin", right, "--", txn, "accept")
            #expect(try await device.python("status").contains(#""tries": 5"#))

            let evidence = try await device.user.run("device", "evidence", "--transaction", txn)
            try #require(evidence.status == 0, "\(evidence.errors)")
            let bundle = try device.file("bundle.json", evidence.output)
            let identity = try #require(try JSONValue.parse(evidence.output)["identity"]?.array?.first)
            let key = try device.file("identity.json", identity.serialized())
            _ = try await DevicePINTests.python(["verify", bundle, "--trust", key])
            let judged = try await device.user.run("verify", bundle, "--trust", key)
            #expect(judged.status == 0 && judged.output.contains("200.00 EUR"), "\(judged.output)\(judged.errors)")

            let next = try device.file("next", Self.next)
            #expect(try await device.python("change", "--pin", right, "--new", next).contains(#""gen": 1"#))
            #expect(
                try await device.complaint("change", "--pin", right, "--new", wrong).contains("the password is wrong"))
            #expect(try await device.python("change", "--pin", next, "--new", right).contains(#""gen": 2"#))
        }
    }

    @Test("Whoever has the device's file and the database learns nothing without the master key, nor after a wipe")
    func thief() async throws {
        try await Self.run("assisted") { device in
            let state = device.home + "/stolen.json"
            let master = device.world.configuration.dataDirectory + "/master.key"
            try FileManager.default.copyItem(atPath: device.home + "/state.json", toPath: state)
            let nothing: JSONValue = [:]
            let found: JSONValue = .object([Self.pin: ["the server's k"]])
            #expect(try await device.thief(state) == nothing)
            let database = try await device.stolenDatabase("database")
            #expect(try await device.thief(state, "--database", database) == nothing)
            #expect(try await device.thief(state, "--database", database, "--master-key", master) == found)
            // An administrator destroys what the PIN opens. The backup from before has it still, but what the thief
            // finds with it signs nothing any more.
            let token = try #require(device.world.endpoints.bootstrapFile)
            try #require(try await device.user.run("admin", "bootstrap", "--token-file", token).status == 0)
            let did = try #require(try JSONValue.parse(String(contentsOfFile: state, encoding: .utf8))["did"]?.string)
            let wiped = try await device.user.run("admin", "devices", "change", "wipe", "--container", did)
            try #require(wiped.status == 0, "\(wiped.errors)")
            let listed = try await device.user.run("admin", "devices", "list", device.world.account.username)
            #expect(listed.output.contains(#""state":"SHREDDED""#), "\(listed.output)")
            let destroyed = try await device.stolenDatabase("destroyed")
            #expect(try await device.thief(state, "--database", destroyed, "--master-key", master) == nothing)
            #expect(try await device.thief(state, "--database", database, "--master-key", master) == found)
            let refused = try await device.complaint("create", "Pay 200.00 EUR to Bob", "payments")
            #expect(refused.contains("status_not_allowed"))
            #expect(try await device.python("delete").contains("REVOKED"))
            let after = try await device.stolenDatabase("after")
            #expect(try await device.thief(state, "--database", after, "--master-key", master) == nothing)
            #expect(try await device.thief(state, "--database", database, "--master-key", master) == found)
        }
    }

    @Test("The same thief finds a PIN that the device checks by itself")
    func control() async throws {
        try await Self.run("local") { device in
            let found: JSONValue = .object([Self.pin: ["the local KEK opens the blob"]])
            let answer = try await device.thief(device.home + "/state.json")
            #expect(answer == found)
        }
    }
}
