import AssentCore
import Foundation

/// A program that the demo starts: its output is read line by line, and lines can be typed into it.
///
/// It must end at the latest with this process, which holds the other end of its standard input.
final class ChildProcess: Sendable {
    private let process: Locked<Process>
    private let input: Pipe
    private let output: Pipe

    /// Starts a program. It finds these variables in its environment, and where programs and libraries are. What it
    /// says of errors is a part of its output if that is wished.
    init(
        _ executable: String, _ arguments: [String] = [], environment: [String: String], readsErrors: Bool = false
    ) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = arguments
        let ours = ProcessInfo.processInfo.environment
        process.environment = ["PATH": ours["PATH"] ?? "", "LD_LIBRARY_PATH": ours["LD_LIBRARY_PATH"] ?? ""]
            .merging(environment) { $1 }
        (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        if readsErrors { process.standardError = output }
        try process.run()
        self.process = Locked(process)
    }

    /// The next line of its output, without its end; `nil` after the last one. One caller at a time.
    func line() async -> String? {
        let reading = output.fileHandleForReading
        return await Self.elsewhere {
            var line: [UInt8] = []
            while line.count < 4096, let byte = try? reading.read(upToCount: 1)?.first {
                if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
                line.append(byte)
            }
            return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
        }
    }

    /// The lines of its output up to the first that begins with `text`, that one included. Without such a line, all.
    func lines(to text: String) async -> [String] {
        var lines: [String] = []
        while let line = await line() {
            lines.append(line)
            if line.hasPrefix(text) { break }
        }
        return lines
    }

    /// Types lines into it. One that has ended is not told: its output says so.
    func type(_ lines: String...) {
        _ = Foundation.signal(SIGPIPE, SIG_IGN)
        try? input.fileHandleForWriting.write(contentsOf: Data(lines.map { $0 + "\n" }.joined().utf8))
    }

    /// Ends it; within five seconds, whatever it is doing.
    func stop() async {
        let id = process.withLock { process in
            process.terminate()
            return process.processIdentifier
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + 5) { [process] in
            process.withLock { if $0.isRunning { kill($0.processIdentifier, SIGKILL) } }
        }
        await Self.wait(for: id)
    }

    /// Waits until it has ended by itself.
    func ended() async {
        while await line() != nil {}
        await Self.wait(for: process.withLock { $0.processIdentifier })
    }

    private static func wait(for id: Int32) async {
        // Process.waitUntilExit would also wait for a process that happens to have its descriptors.
        await elsewhere {
            var information = siginfo_t()
            while waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        }
    }

    /// Does what blocks on a thread on which that holds nobody up.
    private static func elsewhere<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: body()) }
        }
    }
}
