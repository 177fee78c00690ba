import AssentCore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite(
    "What reaches the disk, as the system sees it",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct SyncTests {
    /// The system calls of a process by which it waits for the disk. A traced process goes on only when its call has
    /// been written down.
    struct Trace: Sendable {
        let file: String

        /// `-D` leaves the traced process its place: signals reach it, and its end is seen.
        var prefix: [String] {
            [
                "/usr/bin/strace", "-D", "-f", "-qq", "-y", "-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o",
                file,
            ]
        }

        /// Whether processes may be traced here.
        static func works() async throws -> Bool {
            guard FileManager.default.isExecutableFile(atPath: "/usr/bin/strace") else { return false }
            let process = try WatchedProcess.start(["/usr/bin/strace", "-qq", "-o", "/dev/null", "/bin/true"])
            return await process.exit() == 0
        }

        /// What has been synced with success, in order.
        func synced() throws -> [String] {
            SyncTrace.synced(in: try String(contentsOfFile: file, encoding: .utf8))
        }
    }

    @Test("A call that another thread's comes between stands in two lines, and one that failed is none")
    func lines() {
        let trace = """
            100   fsync(7</data/master.key>)          = 0
            100   fsync(8</data/a (b)> <unfinished ...>
            12345 fdatasync(9</data/assent.sqlite-wal> <unfinished ...>
            100   <... fsync resumed>)              = 0
            100   fsync(7</data>)                   = -1 EIO (Input/output error)
            12345 <... fdatasync resumed>)          = 0
            100   fdatasync(7</data/lost> <unfinished ...>
            100   <... fdatasync resumed>)          = -1 EIO (Input/output error)
            100   fsync(7</data/end> <unfinished ...>) = ?
            """
        #expect(SyncTrace.synced(in: trace) == ["/data/master.key", "/data/a (b)", "/data/assent.sqlite-wal"])
    }

    @Test(
        "Key and directory are synced at the first start, and each acknowledged step of a payment before its answer",
        .enabled("processes cannot be traced here") { try await Trace.works() })
    func server() async throws {
        try await ProcessWorld.run(onSQLite: true) { world in
            let trace = Trace(file: world.directory + "/trace")
            let serve = try await world.start(prefix: trace.prefix)
            let data = URL(fileURLWithPath: world.directory + "/data").resolvingSymlinksInPath().path
            let atStart = try trace.synced()
            let key = try #require(atStart.firstIndex(of: data + "/master.key"), "\(atStart)")
            #expect(atStart[key...].contains(data), "\(atStart)")

            var before = 0
            func expectSync(_ step: String) throws {
                let now = try trace.synced().count { $0 == data + "/assent.sqlite-wal" }
                #expect(now > before, "\(step) was acknowledged before it was on the disk")
                before = now
            }
            try expectSync("the start")
            let session = try await serve.signIn("ana", password: try #require(serve.password))
            try expectSync("the sign-in")
            let id = try ServerFixture.transactionID(try await serve.transfer(to: "Bob", session: session))
            try expectSync("the transaction")
            #expect(try await serve.approve(id, session: session).status == 200)
            try expectSync("the approval")
            #expect(try await serve.transfer(to: "Bob", session: session, transaction: id).status == 201)
            try expectSync("the payment")
            serve.process.signal(SIGTERM)
            #expect(await serve.process.exit() == 0)
        }
    }
}
