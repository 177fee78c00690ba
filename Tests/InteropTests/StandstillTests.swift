import AssentPeers
import Foundation
import TestSupport
import Testing

/// What `Scripts/run_tests.sh` makes of programs that write what tests write.
@Suite("A run of the tests")
struct StandstillTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// A run of a program that says what tests have begun and ended, and does `rest` then. No second of the run passes
    /// before it has said so, however long a machine takes to start it.
    private static func run(_ rest: String, silence: Int) async throws -> FinishedProcess {
        try await offPool {
            let directory = try Peer.temporaryDirectory()
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let said = directory + "/said"
            for (name, script) in [
                ("program", "\(begun); \(ended); : >'\(said)'; \(rest)"),
                ("sleep", "PATH=${PATH#*:}; until [ -e '\(said)' ]; do sleep 0.1; done; exec sleep \"$@\""),
            ] {
                let file = directory + "/" + name
                try Data("#!/bin/sh\n\(script)\n".utf8).write(to: URL(fileURLWithPath: file))
                try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: file)
            }
            var environment = ProcessInfo.processInfo.environment
            environment["PATH"] = "\(directory):\(environment["PATH"] ?? "/usr/bin:/bin")"
            environment["ASSENT_TEST_PROGRAM"] = directory + "/program"
            environment["ASSENT_TEST_SILENCE"] = "\(silence)"
            return try FinishedProcess.run(
                "/bin/bash", [root.appending(path: "Scripts/run_tests.sh").path], environment: environment)
        }
    }

    private static let begun = "echo '◇ Test \"one\" started.'; echo '◇ Test two() started.'"
    private static let ended = "echo '✔ Test two() passed after 0.1 seconds.'"

    @Test("is ended when it stands still, and says which test has not ended")
    func still() async throws {
        let run = try await Self.run("exec tail -f /dev/null", silence: 1)
        #expect(run.status == 1)
        let told = run.complaints.split(separator: "\n")
        #expect(told.contains("\"one\"") && !told.contains("two()"), "\(run.complaints)")
    }

    @Test("is ended as well when it works for ever and no test ends")
    func busy() async throws {
        let run = try await Self.run("while :; do :; done", silence: 1)
        #expect(run.status == 1)
        #expect(run.complaints.contains("\"one\""), "\(run.complaints)")
    }

    @Test("that comes to its end has the status of its tests", arguments: [0, 3])
    func ends(status: Int32) async throws {
        let run = try await Self.run("exit \(status)", silence: 3600)
        #expect(run.status == status)
        #expect(run.text.contains("two() passed"))
    }
}
