import AssentCore
import Foundation
import StoreTesting
import Testing

@testable import AssentServer

@Suite(
    "assent serve when the system refuses it something",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct FaultProcessTests {
    @Test(
        "Beyond a file size limit nothing is granted or spent; without it the same requests succeed, in the same process"
    )
    func fileSize() async throws {
        try await ProcessWorld.run(onSQLite: true) { world in
            let serve = try await world.start()
            let password = try #require(serve.password)
            let session = try await serve.signIn("ana", password: password)
            let id = try ServerFixture.transactionID(try await serve.transfer(to: "Bob", session: session))
            #expect(try await serve.approve(id, session: session).status == 200)
            try await limitFiles(of: serve, to: "1")
            let refused = try await serve.transfer(to: "Bob", session: session, transaction: id)
            #expect(refused.status == 503 && refused.json["forwarded"] == "no")
            #expect(try await serve.transfer(to: "Eve", session: session).status == 503)
            let start = try await serve.send(
                "POST",
                serve.server + "/json/realms/root/realms/alpha/authenticate?authIndexType=service&authIndexValue=Quick")
            #expect(start.status == 503 && start.json["message"]?.string?.contains("database") == true)
            // Reading goes on.
            let info = try await serve.send(
                "POST", serve.server + "/json/realms/root/realms/alpha/sessions?_action=getSessionInfo",
                ServerFixture.session(session))
            #expect(info.status == 200)
            try await limitFiles(of: serve, to: "unlimited")
            #expect(try await serve.transfer(to: "Bob", session: session, transaction: id).status == 201)
            #expect(try await serve.signIn("ana", password: password).isEmpty == false)
            serve.process.signal(SIGTERM)
            #expect(await serve.process.exit() == 0)
            #expect(try await world.ledger().map(\.payee) == ["Bob"])
        }
    }

    @Test(
        "Another user of the system, or a database that may not be written, is a clear error at the start; put right, all is as it was",
        .enabled(if: geteuid() == 0, "only root can become somebody else"))
    func otherUser() async throws {
        try await ProcessWorld.run(onSQLite: true) { world in
            let first = try await world.start()
            let password = try #require(first.password)
            let session = try await first.signIn("ana", password: password)
            first.process.signal(SIGTERM)
            #expect(await first.process.exit() == 0)
            let other = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            let files = try FileManager.default.contentsOfDirectory(atPath: world.directory + "/data")
                .map { world.directory + "/data/" + $0 }
            #expect(chmod(world.directory, 0o755) == 0)

            // Root's data directory.
            var error = try await refusal(world, other)
            #expect(error.contains(world.directory + "/data"))

            // Theirs, with a database that is not theirs to write.
            for path in files + [world.directory + "/data"] { #expect(chown(path, 65534, 65534) == 0) }
            #expect(chmod(world.directory + "/data/assent.sqlite", 0o400) == 0)
            error = try await refusal(world, other)
            #expect(error.contains("assent.sqlite") && error.contains("read"))

            #expect(chmod(world.directory + "/data/assent.sqlite", 0o600) == 0)
            let second = try await world.start(prefix: other)
            let info = try await second.send(
                "POST", second.server + "/json/realms/root/realms/alpha/sessions?_action=getSessionInfo",
                ServerFixture.session(session))
            #expect(info.status == 200 && info.json["username"] == "ana")
            let id = try ServerFixture.transactionID(try await second.transfer(to: "Bob", session: session))
            #expect(try await second.approve(id, session: session).status == 200)
            #expect(try await second.transfer(to: "Bob", session: session, transaction: id).status == 201)
            second.process.signal(SIGTERM)
            #expect(await second.process.exit() == 0)
        }
    }

    /// What `assent serve` says when it does not start; its exit status must be 78.
    private func refusal(_ world: ProcessWorld, _ prefix: [String]) async throws -> String {
        let process = try WatchedProcess.start(prefix + ServeProcess.command(directory: world.directory))
        #expect(await process.exit() == 78)
        await process.waitUntilRead()
        return process.errors
    }

    private func limitFiles(of serve: ServeProcess, to size: String) async throws {
        let id = serve.process.identifier
        let process = try WatchedProcess.start(["/usr/bin/prlimit", "--pid", "\(id)", "--fsize=\(size):unlimited"])
        #expect(await process.exit() == 0, "\(process.errors)")
    }
}
