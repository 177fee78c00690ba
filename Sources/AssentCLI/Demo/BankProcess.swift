import AssentCore
import Foundation

/// The example bank as a process of its own, on a free port.
final class BankProcess: Sendable {
    /// The port that it listens on, on 127.0.0.1.
    let port: Int

    private let process: Locked<Process>

    /// Why the bank does not run.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private init(process: sending Process, port: Int) {
        self.process = Locked(process)
        self.port = port
    }

    /// Starts `executable` with its books in `directory`, and waits until it listens.
    static func start(executable: String, directory: String, owner: String) throws -> BankProcess {
        guard FileManager.default.isExecutableFile(atPath: executable) else {
            throw Failure(
                description:
                    "the bank is not built: run 'swift build --product AssentExampleBank' (missing: \(executable))")
        }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: executable)
        process.environment = [
            "BANK_DATABASE": directory + "/bank.sqlite", "BANK_PORT": "0", "BANK_OWNERS": owner,
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "",
            "LD_LIBRARY_PATH": ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? "",
        ]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        var line: [UInt8] = []
        while let byte = try output.fileHandleForReading.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") {
            line.append(byte)
        }
        guard let port = String(decoding: line, as: UTF8.self).split(separator: ":").last.flatMap({ Int($0) }) else {
            process.terminate()
            throw Failure(description: "the bank did not start")
        }
        return BankProcess(process: process, port: port)
    }

    /// Ends the process.
    func stop() {
        process.withLock { process in
            process.terminate()
            process.waitUntilExit()
        }
    }
}
