import Foundation
import TestSupport
import Testing

@Suite("What tests start")
struct SpawningTests {
    @Test("gets three descriptors, whatever else is open here, and no signal that is blocked or ignored here")
    func descriptors() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        signal(SIGPIPE, SIG_IGN)
        let done = try FinishedProcess.run(
            "/bin/sh", ["-c", "echo /proc/$$/fd/*; exec grep -E 'Sig(Blk|Ign)' /proc/self/status"])
        let lines = done.text.split(separator: "\n").map(String.init)
        try #require(lines.count == 3)
        // The fourth is the directory that the shell lists.
        #expect(lines[0].split(separator: " ").map { $0.split(separator: "/").last } == ["0", "1", "2", "3"])
        let masks = lines[1...].compactMap { UInt64($0.split(separator: "\t").last ?? "", radix: 16) }
        // Above the 31 signals of POSIX the C library has two of its own.
        #expect(masks.count == 2 && masks.allSatisfy { $0 & 0x7FFF_FFFF == 0 }, "\(lines)")
    }

    @Test("is read to its end and waited for, though a child of its own lives on")
    func orphan() throws {
        // The child waits for the end of its input.
        let process = try SpawnedProcess(
            "/bin/sh", ["-c", "exec 4<&0; cat <&4 >/dev/null 2>&1 & echo $!; exit 7"], input: .pipe, output: .pipe)
        #expect(process.wait() == 7)
        let number = String(decoding: process.output?.availableData ?? Data(), as: UTF8.self)
        #expect(Int32(number.trimmingCharacters(in: .newlines)) != nil)
        try process.input?.close()
    }

    @Test("tells how it ended, what it was given and what it wrote, and that it cannot be started")
    func results() throws {
        #expect(try FinishedProcess.run("/bin/sh", ["-c", "kill -TERM $$"]).status == -SIGTERM)
        let done = try FinishedProcess.run(
            "/bin/sh", ["-c", "cat; pwd; echo $WORD >&2; exit 3"], environment: ["WORD": "word"], directory: "/",
            input: Array("said\n".utf8))
        #expect(done.status == 3 && done.text == "said\n/\n" && done.complaints == "word\n")
        #expect(throws: SpawnFailure.self) { try FinishedProcess.run("/nowhere") }
        #expect(throws: SpawnFailure.self) { try FinishedProcess.run("/bin/sh", directory: "/nowhere") }
    }

    @Test("ends with the last reference to it, and is signalled no more when it has ended")
    func lifetime() throws {
        var process: SpawnedProcess? = try SpawnedProcess("/bin/cat", input: .pipe)
        let id = try #require(process?.id)
        #expect(process?.isRunning == true)
        process = nil
        #expect(kill(id, 0) == -1)
        let ended = try SpawnedProcess("/bin/true")
        #expect(ended.wait() == 0)
        ended.signal(SIGKILL)
        #expect(ended.exitStatus == 0)
    }
}
