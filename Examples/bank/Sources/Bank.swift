import Foundation
import Hummingbird
import Logging

/// A small bank to protect. It prints its port when it listens.
@main
struct Bank {
    private static let help = """
        A small bank for the examples. It has no arguments; settings come from the environment:

          BANK_DATABASE         the file with its books, which it makes (needed)
          BANK_PORT             the port on 127.0.0.1 (default: 9080); 0 takes a free one
          BANK_OWNERS           names, separated by commas (default: ana); each begins with 1000.00 EUR
          BANK_ENDS_WITH_INPUT  with any value: it ends when its standard input does

        Example:  BANK_DATABASE=/tmp/bank.sqlite .build/debug/AssentExampleBank

        """

    static func main() async throws {
        if let word = CommandLine.arguments.dropFirst().first {
            guard word == "--help" || word == "-h" else {
                FileHandle.standardError.write(Data("bank: there are no arguments; --help shows the settings\n".utf8))
                exit(64)
            }
            FileHandle.standardOutput.write(Data(help.utf8))
            return
        }
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
