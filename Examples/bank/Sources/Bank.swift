import Foundation
import Hummingbird
import Logging

/// A small bank to protect. Settings come from the environment: `BANK_DATABASE` (a file), `BANK_PORT` (0 takes a free
/// one), `BANK_OWNERS` (names, separated by commas; each begins with 1000.00 EUR). It prints its port when it listens.
/// With `BANK_ENDS_WITH_INPUT` it ends when its standard input does, as when the program that has started it ends.
@main
struct Bank {
    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        guard let path = environment["BANK_DATABASE"], let port = Int(environment["BANK_PORT"] ?? "9080") else {
            FileHandle.standardError.write(Data("bank: set BANK_DATABASE to a file and BANK_PORT to a port\n".utf8))
            exit(64)
        }
        if environment["BANK_ENDS_WITH_INPUT"] != nil {
            Thread.detachNewThread {
                while !FileHandle.standardInput.availableData.isEmpty {}
                exit(0)
            }
        }
        do {
            try await serve(path: path, port: port, environment)
        } catch {
            // An error that leaves `main` is a crash with a backtrace.
            let reason =
                "\(error)".contains("Address already in use")
                ? "another program listens on port \(port). Set BANK_PORT to another, or to 0 for a free one."
                : "\(error)"
            FileHandle.standardError.write(Data("bank: cannot start: \(reason)\n".utf8))
            exit(1)
        }
    }

    private static func serve(path: String, port: Int, _ environment: [String: String]) async throws {
        let owners = (environment["BANK_OWNERS"] ?? "ana").split(separator: ",").map(String.init)
        let ledger = try Ledger(path: path, owners: owners, openingBalance: Money(cents: 100_000))
        var logger = Logger(label: "bank")
        logger.logLevel = .warning
        let application = Application(
            router: bankRouter(ledger),
            configuration: .init(address: .hostname("127.0.0.1", port: port), serverName: "bank"),
            onServerRunning: { channel in
                let port = channel.localAddress?.port ?? 0
                FileHandle.standardOutput.write(Data("bank: listening on 127.0.0.1:\(port)\n".utf8))
            },
            logger: logger)
        try await application.runService()
    }
}
