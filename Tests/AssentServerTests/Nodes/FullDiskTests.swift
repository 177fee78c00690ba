#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite("A PostgreSQL whose disk is full", .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct FullDiskTests {
    @Test(
        "What cannot be written is refused with 503 and not forwarded; with room again, the same server goes on",
        .enabled(if: PostgreSQLServer.canMount, "only root can make a small file system"))
    func full() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let server = try await offPool { try PostgreSQLServer(tablespace: 32) }
        let database = try await server.offPool { try $0.makeDatabase(options: "TEMPLATE template0 TABLESPACE small") }
        let fixture = try await ServerFixture(node: FixtureNode(database: database, keyFile: directory + "/key"))
        do {
            try await story(
                fixture,
                fill: { isFull in
                    try await server.offPool { server in
                        guard isFull else {
                            try server.resizeTablespace(64)
                            return ""
                        }
                        // On a slow machine autovacuum would run before the test ends, and give the pages back.
                        let filler = "CREATE TABLE filler (text TEXT) WITH (autovacuum_enabled = false)"
                        try server.sql(filler, in: database.database)
                        let fill = "INSERT INTO filler SELECT repeat('x', 1500) FROM generate_series(1, 100000)"
                        // The pages stay the table's, although the statement fails.
                        do { return try server.sql(fill, in: database.database) } catch { return "\(error)" }
                    }
                })
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }

    private func story(_ server: ServerFixture, fill: (Bool) async throws -> String) async throws {
        let session = try await server.session()
        let fields = ServerFixture.jsonFields + ServerFixture.session(session)
        func pay(_ id: String) async throws -> Answer {
            try await server.send("POST", server.gateway("/nods?_txid=\(id)"), fields, text: FixtureBody.transfer)
        }
        var ids: [String] = []
        for _ in 0..<3 { ids.append(try await server.completedTransaction(session: session)) }
        #expect(try await fill(true).contains("No space left on device"))
        // Pages that have room take some more.
        var refused = 0
        for number in 0..<2_000 where refused < 3 {
            // Each asks for something else: what is asked twice is answered with the same transaction.
            let answer = try await server.send(
                "POST", server.gateway("/nods?number=\(number)"), fields, text: FixtureBody.transfer)
            #expect([401, 503].contains(answer.status))
            if answer.status == 503 { refused += 1 }
        }
        #expect(refused == 3)
        var unpaid: [String] = []
        for id in ids {
            let answer = try await pay(id)
            #expect([201, 503].contains(answer.status))
            if answer.status == 503 {
                #expect(answer.json["forwarded"] == "no")
                unpaid.append(id)
            }
        }
        #expect(server.upstream.requests.count == ids.count - unpaid.count)
        _ = try await fill(false)
        for id in unpaid { #expect(try await pay(id).status == 201) }
        for id in ids { #expect(try await pay(id).status == 409) }
        #expect(server.upstream.requests.count == ids.count)
    }
}
#endif
