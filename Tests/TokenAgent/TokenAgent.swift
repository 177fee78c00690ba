import AssentCore
import AssentTokens
import AssentTransportNIO
import AssentVault
import Foundation
import Logging

/// A process with a token manager, for tests of several processes and of one that dies. It reads commands, one a line,
/// and writes one line for each. Access tokens are shown as digests.
@main
enum TokenAgent {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst().map(\.self)
        guard arguments.count == 9, let patience = Double(arguments[5]) else {
            throw TokenError(
                .invalidConfiguration,
                "issuer client redirect scopes directory patience authority cookie parameters")
        }
        let directory = URL(filePath: arguments[4])
        var configuration = try TokenConfiguration(
            issuer: arguments[0], clientID: arguments[1], redirectURI: arguments[2],
            scopes: arguments[3].split(separator: " ").map(String.init), sessionCookieName: arguments[7])
        configuration.patience = patience
        configuration.authorizationParameters = try FormEncoding.parse(arguments[8]).items
        let transport = try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: arguments[6].isEmpty ? .system : .pemFile(arguments[6]),
                pins: ["localhost": .unpinned], allowPlaintextLoopback: true
            ).withLeastLimit(.seconds(3600)))
        let vault = try await FileVault.open(
            directory.appending(path: "vault"),
            keys: .software(
                SoftwareKeyProvider(unprotectedFile: directory.appending(path: "vault.key"), lockTimeout: 3600)),
            lockTimeout: 3600)
        let clock = SkippingClock()
        let manager = TokenManager(
            configuration: configuration, transport: transport, store: vault, clock: clock,
            logger: Logger(label: "agent", factory: { _ in SwiftLogNoOpLogHandler() }))
        while let command = readLine() {
            clock.skip()
            say(await answer(command, manager))
        }
    }

    private static func answer(_ command: String, _ manager: TokenManager) async -> String {
        if command == "crowd" { return await crowd(manager) }
        do {
            switch command {
            case "metadata": _ = try await manager.metadata()
            case "tokens":
                let token = try await manager.tokens().accessToken
                return "ok \(Base64URL.encode(SHA2.sha256(token.revealBytes())))"
            default: return "what?"
            }
            return "ok"
        } catch let error as TokenError {
            return "error \(error.code) \(error.signInReason?.rawValue ?? "-")"
        } catch {
            return "error \(error) -"
        }
    }

    /// What 125 tasks get that ask at once: one answer, when it is the same for all.
    private static func crowd(_ manager: TokenManager) async -> String {
        let answers = await withTaskGroup(of: String.self) { group in
            for _ in 0..<125 { group.addTask { await answer("tokens", manager) } }
            return await group.reduce(into: Set()) { $0.insert($1) }
        }
        return answers.count == 1 ? answers.first ?? "" : "different: \(answers.sorted().joined(separator: ", "))"
    }

    private static func say(_ line: String) {
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }
}

/// The system's clock, a second later at each command: the tests change the vault behind this process's back, and what
/// a manager has read it believes for a second.
private final class SkippingClock: WallClock {
    private let skipped = Locked<TimeInterval>(0)

    var now: Date { Date().addingTimeInterval(skipped.withLock { $0 }) }

    func skip() { skipped.withLock { $0 += 1 } }

    func sleep(until deadline: Date) async throws {
        try await SystemClock().sleep(until: deadline.addingTimeInterval(-skipped.withLock { $0 }))
    }
}
