import Foundation
import TestSupport
import Testing

/// What `Scripts/run_tests.sh` makes of programs that write what tests write.
@Suite("A run of the tests")
struct StandstillTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func run(_ script: String, silence: Int) async throws -> FinishedProcess {
        try await offPool {
            let program = FileManager.default.temporaryDirectory.appending(path: "assent-tests-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: program) }
            try Data("#!/bin/sh\n\(script)\n".utf8).write(to: program)
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: program.path)
            var environment = ProcessInfo.processInfo.environment
            environment["ASSENT_TEST_PROGRAM"] = program.path
            environment["ASSENT_TEST_SILENCE"] = "\(silence)"
            return try FinishedProcess.run(
                "/bin/bash", [root.appending(path: "Scripts/run_tests.sh").path], environment: environment)
        }
    }

    private static let begun = "echo '◇ Test \"one\" started.'; echo '◇ Test two() started.'"
    private static let ended = "echo '✔ Test two() passed after 0.1 seconds.'"

    @Test("is ended when it stands still, and says which test has not ended")
    func still() async throws {
        let run = try await Self.run("\(Self.begun); \(Self.ended); exec tail -f /dev/null", silence: 1)
        #expect(run.status == 1)
        let told = run.complaints.split(separator: "\n")
        #expect(told.contains("\"one\"") && !told.contains("two()"), "\(run.complaints)")
    }

    @Test("is ended as well when it works for ever and no test ends")
    func busy() async throws {
        let run = try await Self.run("\(Self.begun); \(Self.ended); while :; do :; done", silence: 1)
        #expect(run.status == 1)
        #expect(run.complaints.contains("\"one\""), "\(run.complaints)")
    }

    @Test("that comes to its end has the status of its tests", arguments: [0, 3])
    func ends(status: Int32) async throws {
        let run = try await Self.run("\(Self.begun); \(Self.ended); exit \(status)", silence: 3600)
        #expect(run.status == status)
        #expect(run.text.contains("two() passed"))
    }
}
