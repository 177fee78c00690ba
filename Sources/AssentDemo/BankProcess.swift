import AssentCore
import Foundation

/// The example bank as a process of its own, on a free port.
package final class BankProcess: Sendable {
    /// The port that it listens on, on 127.0.0.1.
    let port: Int

    private let process: ChildProcess

    /// Why the bank does not run.
    package struct Failure: Error, CustomStringConvertible {
        /// The reason, in a sentence.
        package let description: String
    }

    private init(process: ChildProcess, port: Int) {
        self.process = process
        self.port = port
    }

    /// Starts `executable` with its books in `directory`, and waits until it listens.
    ///
    /// It ends at the latest with this process.
    static func start(executable: String, directory: String, owner: String) async throws -> BankProcess {
        guard FileManager.default.isExecutableFile(atPath: executable) else {
            throw Failure(
                description:
                    "the bank is not built: run 'swift build --product AssentExampleBank' (missing: \(executable))")
        }
        let process = try ChildProcess(
            executable,
            environment: [
                "BANK_DATABASE": directory + "/bank.sqlite", "BANK_PORT": "0", "BANK_OWNERS": owner,
                "BANK_ENDS_WITH_INPUT": "yes",
            ])
        guard let port = await process.line()?.split(separator: ":").last.flatMap({ Int($0) }) else {
            await process.stop()
            throw Failure(description: "the bank did not start; what it says itself is above")
        }
        return BankProcess(process: process, port: port)
    }

    /// Ends the process; within five seconds, whatever it is doing.
    func stop() async { await process.stop() }
}
