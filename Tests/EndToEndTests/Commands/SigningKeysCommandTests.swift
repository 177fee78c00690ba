import AssentCore
import AssentServer
import AssentStore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent admin signing-keys and assent restore-fence")
struct SigningKeysCommandTests {
    @Test("An administrator changes the keys: devices go on, old evidence stays good, and the others are refused")
    func rotation() async throws {
        try await DeviceTests.run { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            try await desk.enrol()
            let before = try await desk.payAndSign().transaction
            let old = try await desk.evidence(of: before)
            let (file, key) = try desk.write(old)

            let signedOut = try await device.run(
                "admin", "signing-keys", "rotate-identity", "--config", device.clientFile)
            #expect(signedOut.status == 1 && signedOut.errors.contains("assent login"), "\(signedOut.errors)")
            let denied = try await user.run("admin", "signing-keys", "rotate-identity")
            #expect(denied.status == 2 && denied.errors.contains("The server refused"), "\(denied.errors)")
            let token = try #require(world.endpoints.bootstrapFile)
            #expect(try await user.run("admin", "bootstrap", "--token-file", token).status == 0)

            let rotated = try await user.run("admin", "signing-keys", "rotate-identity")
            #expect(rotated.status == 0, "\(rotated.errors)")
            let first = try Self.told(rotated)
            let withdrawn = try await user.run("admin", "signing-keys", "withdraw-online")
            #expect(withdrawn.status == 0, "\(withdrawn.errors)")
            let second = try Self.told(withdrawn)
            #expect(second.identity == first.identity && second.generation > first.generation)

            let after = try await desk.payAndSign().transaction
            let new = try await desk.evidence(of: after)
            let judged = try await user.run("verify", file, "--trust", key)
            #expect(judged.status == 0, "\(judged.output)\(judged.errors)")
            // The key that the first command named is the one by which the new evidence is judged.
            let newFile = try desk.write(new).file
            let byNew = try await user.run("verify", newFile, "--trust", first.identity)
            #expect(byNew.status == 0, "\(byNew.output)\(byNew.errors)")
        }
    }

    private static func told(_ result: Program.Result) throws -> (generation: Int, identity: String) {
        let generation = try #require(result.output.firstMatch(of: /generation ([0-9]+) on/)?.output.1)
        let identity = try #require(result.output.firstMatch(of: /--trust':\s+(\S+)/)?.output.1)
        return (try #require(Int(generation)), String(identity))
    }

    @Test(
        "What cannot be run is refused before anything happens",
        arguments: [
            (["admin", "signing-keys", "rotate-identity", "now"], 64), (["admin", "signing-keys", "rotate"], 64),
            (["admin", "signing-keys", "withdraw-online", "--all"], 64), (["restore-fence"], 64),
            (["restore-fence", "--config"], 64), (["restore-fence", "--config", "/nowhere/assent.yaml"], 78),
        ] as [([String], Int32)])
    func badInput(words: [String], status: Int32) async throws {
        let directory = NSTemporaryDirectory() + "/assent-words-" + SystemRandom().token(byteCount: 9)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let result = try await Program(below: directory, client: "").start(words).result()
        #expect(result.status == status && !result.errors.isEmpty, "\(result.output)\(result.errors)")
    }

    @Test(
        "After a backup was restored, what was open in it is ended once; a file in use, or a database without its key, is not touched"
    )
    func restoreFence() async throws {
        try await DeviceTests.run { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            try await desk.enrol()
            let paying = try await desk.pay().paying
            let inviting = try await desk.invite().inviting
            let backup = device.home + "/backup"
            let restored = try await Self.restored(world, in: backup)
            paying.interrupt()
            inviting.interrupt()
            _ = await (paying.result(), inviting.result())

            let example = try String(contentsOfFile: World.configurationFile, encoding: .utf8)
            func fence(_ settings: String, _ more: String...) async throws -> Program.Result {
                let file = device.home + "/server.yaml"
                try example.replacing("dataDirectory: .assent", with: settings)
                    .write(toFile: file, atomically: false, encoding: .utf8)
                return try await device.start(["restore-fence", "--config", file] + more).result()
            }
            // Several servers may use one PostgreSQL database, so nothing keeps them out of it.
            if !TestDatabase.isPostgreSQL {
                let inUse = try await fence("dataDirectory: \(world.configuration.dataDirectory)")
                #expect(inUse.status == 78 && inUse.errors.contains("uses this data directory"), "\(inUse.errors)")
                let nothing = try await fence("dataDirectory: \(device.home)/nothing")
                #expect(nothing.status == 78 && nothing.errors.contains("restore the backup"), "\(nothing.errors)")
            }

            let key = backup + "/master.key"
            let right = try Data(contentsOf: URL(fileURLWithPath: key))
            try FileManager.default.removeItem(atPath: key)
            let missing = try await fence(restored)
            #expect(missing.status == 78 && missing.errors.contains("master key is missing"), "\(missing.errors)")
            let other = Data(SystemRandom().bytes(32)).base64EncodedData()
            for (content, isRight) in [(other, false), (right, true)] {
                try? FileManager.default.removeItem(atPath: key)
                _ = FileManager.default.createFile(
                    atPath: key, contents: content, attributes: [.posixPermissions: 0o600])
                let done = try await fence(restored, "--json")
                guard isRight else {
                    #expect(done.status == 78 && done.errors.contains("not the master key"), "\(done.errors)")
                    continue
                }
                #expect(done.status == 0, "\(done.errors)")
                let ended = try JSONValue.parse(done.output)
                // The invite by which the device was enrolled is known for a while, and has ended.
                #expect(ended["signingTransactions"] == 1 && ended["invites"] == 1, "\(done.output)")
                #expect(ended["enrolments"] == 0 && ended["sessions"]?.integer ?? 0 > 0, "\(done.output)")
            }
            let again = try await fence(restored)
            #expect(again.status == 0 && !again.output.contains("sessions"), "\(again.output)")
        }
    }

    /// Makes a backup of what a server has stored and restores it elsewhere, with the master key in `directory`.
    ///
    /// - Returns: the settings of a server on the restored data.
    private static func restored(_ world: DemoWorld, in directory: String) async throws -> String {
        let data = world.configuration.dataDirectory
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        func copy(_ name: String) throws {
            try FileManager.default.copyItem(atPath: "\(data)/\(name)", toPath: "\(directory)/\(name)")
        }
        try copy("master.key")
        if let old = world.configuration.postgreSQL, let host = old.hosts.first,
            case .postgresql(let new) = try await TestDatabase.location(directory, isEmpty: true)
        {
            let server = ["--host", host.name, "--port", "\(host.port)", "--username", old.user, "--no-password"]
            let file = directory + "/dump"
            for (program, words) in [
                ("pg_dump", ["--no-owner", "--file", file, old.database]),
                ("psql", ["-X", "-q", "-v", "ON_ERROR_STOP=1", "--file", file, new.database]),
            ] {
                let done = try await offPool { try FinishedProcess.run("/usr/bin/" + program, server + words) }
                try #require(done.status == 0, "\(done.complaints)")
            }
            return """
                dataDirectory: \(directory)
                masterKeyFile: \(directory)/master.key
                database: {postgresql: {hosts: [\(host.name)], database: \(new.database), user: \(new.user)}}
                """
        }
        // The server goes on writing: copies of its files, made one after the other, need not fit together.
        _ = try await ConfiguredBackup.run(world.configuration, to: directory + "/assent.sqlite")
        return "dataDirectory: \(directory)"
    }
}
