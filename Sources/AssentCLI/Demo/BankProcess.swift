import AssentCore
import Foundation

/// The example bank as a process of its own, on a free port.
final class BankProcess: Sendable {
    /// The port that it listens on, on 127.0.0.1.
    let port: Int

    private let process: Locked<Process>
    private let leash: Pipe

    /// Why the bank does not run.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private init(process: sending Process, leash: Pipe, port: Int) {
        self.process = Locked(process)
        self.leash = leash
        self.port = port
    }

    /// Starts `executable` with its books in `directory`, and waits until it listens.
    ///
    /// It ends at the latest with this process, which holds the other end of its standard input.
    static func start(executable: String, directory: String, owner: String) async throws -> BankProcess {
        guard FileManager.default.isExecutableFile(atPath: executable) else {
            throw Failure(
                description:
                    "the bank is not built: run 'swift build --product AssentExampleBank' (missing: \(executable))")
        }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: executable)
        process.environment = [
            "BANK_DATABASE": directory + "/bank.sqlite", "BANK_PORT": "0", "BANK_OWNERS": owner,
            "BANK_ENDS_WITH_INPUT": "yes",
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "",
            "LD_LIBRARY_PATH": ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? "",
        ]
        let (leash, output) = (Pipe(), Pipe())
        process.standardInput = leash
        process.standardOutput = output
        try process.run()
        let reading = output.fileHandleForReading
        let line = await elsewhere { firstLine(of: reading) }
        guard let port = line.split(separator: ":").last.flatMap({ Int($0) }) else {
            process.terminate()
            throw Failure(description: "the bank did not start; what it says itself is above")
        }
        return BankProcess(process: process, leash: leash, port: port)
    }

    /// Ends the process; within five seconds, whatever it is doing.
    func stop() async {
        let id = process.withLock { process in
            process.terminate()
            return process.processIdentifier
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + 5) { [process] in
            process.withLock { if $0.isRunning { kill($0.processIdentifier, SIGKILL) } }
        }
        // Process.waitUntilExit would also wait for whoever happens to have got its descriptors.
        await Self.elsewhere {
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

    private static func firstLine(of handle: FileHandle) -> String {
        var line: [UInt8] = []
        while line.count < 1024, let byte = try? handle.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") {
            line.append(byte)
        }
        return String(decoding: line, as: UTF8.self)
    }
}
