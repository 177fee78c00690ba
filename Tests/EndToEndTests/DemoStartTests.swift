#if os(Linux)
import AssentCore
import AssentDemo
import AssentServer
import Foundation
import Testing

@Suite("A demo that does not start")
struct DemoStartTests {
    private struct Refused: Error {}

    /// What is left of a demo in a directory: its bank, and the lock that its server holds.
    private struct Left: Equatable {
        var isDirectory = false
        var banks = 0
        var isServing = false

        init(of directory: String) throws {
            isDirectory = FileManager.default.fileExists(atPath: directory)
            let place = "BANK_DATABASE=\(directory)/"
            for name in try FileManager.default.contentsOfDirectory(atPath: "/proc") where Int32(name) != nil {
                // Those of other users cannot be read, and one that has ended meanwhile has none.
                let environment = try? String(contentsOfFile: "/proc/\(name)/environ", encoding: .utf8)
                if environment?.contains(place) == true { banks += 1 }
            }
            let lock = URL(fileURLWithPath: directory).lastPathComponent + "/server/serve.lock"
            isServing = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").contains { file in
                let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(file)")
                return path?.contains(lock) == true
            }
        }

        init() {}
    }

    @Test("Its bank, its server and its directory are gone, whenever it fails", arguments: [false, true])
    func leavesNothing(isServing: Bool) async throws {
        var sources = try await World.sources()
        let usual = sources.configure
        let directory = Locked<String?>(nil)
        let before = Locked<Left?>(nil)
        sources.configure = { configuration in
            try usual(&configuration)
            let path = String(configuration.dataDirectory.dropLast("/server".count))
            directory.withLock { $0 = path }
            guard !isServing else { return }
            let left = try Left(of: path)
            before.withLock { $0 = left }
            throw Refused()
        }
        sources.app = { _, _ in
            let left = directory.withLock { $0 }.flatMap { try? Left(of: $0) }
            before.withLock { $0 = left }
            return nil
        }
        await #expect(throws: (any Error).self) {
            _ = try await DemoWorld.start(sources: sources, clock: DemoClock(), logger: CollectingLog().logger)
        }
        let place = try #require(directory.withLock { $0 })
        // The control: it was there.
        let found = try #require(before.withLock { $0 })
        #expect(found.isDirectory && found.banks == 1 && found.isServing == isServing, "\(found)")
        #expect(try Left(of: place) == Left())
    }
}
#endif
