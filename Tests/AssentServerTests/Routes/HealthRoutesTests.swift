import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Logging
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("/readyz says by fixed words why a node is not ready, and names no server")
struct HealthRoutesTests {
    /// A database with something wrong.
    private struct Troubled: SQLDatabase {
        let base: any SQLDatabase
        var error: StoreError?
        var notices = DatabaseNotices()

        func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await base.run(statement) }
        func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] { try await base.run(statements) }
        func checkHealth() async throws { if let error { throw error } }
        func close() async throws { try await base.close() }
    }

    private func readiness(_ error: StoreError?, _ notices: DatabaseNotices = .init()) async throws -> (Int, JSONObject)
    {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let location = DatabaseLocation.sqlite(path: directory + "/assent.sqlite")
        let database = Troubled(
            base: try await location.open(clock: SystemClock()), error: error, notices: notices)
        let context = EngineContext(
            database: database, clock: SystemClock(), random: SystemRandom(),
            masterKey: try MasterKey(Secret(bytes: SystemRandom().bytes(MasterKey.byteCount))),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let hold = try #require(try await location.hold(node: context.node))
        let health = HealthRoutes(
            database: context.database, passwords: Passwords(context),
            watch: NodeWatch(context, location, hold, clockLimit: nil))
        let found = await health.readiness()
        try await database.close()
        return (found.status, found.body)
    }

    @Test("Each obstacle of the database has its word and its sentence")
    func obstacles() async throws {
        var sentences: Set<String> = []
        for obstacle in StoreError.Obstacle.allCases.map(Optional.some) + [nil] {
            let (status, body) = try await readiness(
                StoreError(.unavailable, "db1.bank.example does not answer", obstacle: obstacle))
            #expect(status == 503)
            #expect(body["reason"]?.string == obstacle?.rawValue ?? "database")
            #expect(!JSONValue.object(body).serialized().contains("db1"))
            sentences.insert(try #require(body["status"]?.string))
        }
        #expect(sentences.count == StoreError.Obstacle.allCases.count + 1)
    }

    @Test("A server beside the one that is used, which only lacks something, is a warning of a node that is ready")
    func behind() async throws {
        var (status, body) = try await readiness(nil)
        #expect(status == 200 && body["status"]?.string == "ready" && body["warning"] == nil)
        (status, body) = try await readiness(nil, DatabaseNotices(serversBehind: 1))
        #expect(status == 200 && body["status"]?.string == "ready" && body["warning"]?.string == "serverBehind")
    }
}
