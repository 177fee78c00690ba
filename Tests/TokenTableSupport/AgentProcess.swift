import AssentCore
import AssentTokens
package import AssentVault
package import Foundation
import TestSupport

/// A vault in a directory of its own, which other processes open too.
package final class TemporaryVault: Sendable {
    package let url: URL

    package init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "assent-agents-\(SystemRandom().uuid())")
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    package func open() async throws -> FileVault {
        try await FileVault.open(
            url.appending(path: "vault"),
            keys: .software(
                SoftwareKeyProvider(
                    unprotectedFile: url.appending(path: "vault.key"), lockTimeout: Double(Patience.seconds))),
            lockTimeout: Double(Patience.seconds))
    }
}

/// A process of its own that has a token manager (`Tests/TokenAgent`). It does one thing after the other, as it is
/// told.
package final class AgentProcess: Sendable {
    package struct Failed: Error { package init() {} }

    private struct Output: Sendable {
        var partial: [UInt8] = []
        var lines: [String] = []
        var taken = 0
        var hasEnded = false
    }

    private let process: SpawnedProcess
    private let output = Watched(Output())

    /// Starts one. `patience` is how many seconds it waits for others.
    package init(_ world: ProviderWorld, vault: TemporaryVault, patience: Int? = nil) throws {
        let products = Bundle.main.executableURL?.deletingLastPathComponent() ?? URL(filePath: ".")
        let configuration = world.configuration
        let process = try SpawnedProcess(
            products.appending(path: "TokenAgent").path,
            [
                configuration.issuer, configuration.clientID, configuration.redirectURI,
                configuration.scopes.joined(separator: " "), vault.url.path, "\(patience ?? Patience.seconds)",
                world.authorityFile ?? "",
                configuration.sessionCookieName, FormEncoding.encode(FormItems(configuration.authorizationParameters)),
            ], input: .pipe, output: .pipe)
        self.process = process
        guard let reading = process.output else { throw Failed() }
        let seen = output
        // A thread of its own: a readability handler of Foundation on Linux can crash when the pipe ends.
        Thread.detachNewThread { Self.read(reading, into: seen) }
    }

    private static func read(_ handle: FileHandle, into output: Watched<Output>) {
        var hasEnded = false
        while !hasEnded {
            let bytes = [UInt8](handle.availableData)
            hasEnded = bytes.isEmpty
            output.update { output in
                output.hasEnded = bytes.isEmpty
                output.partial += bytes
                while let end = output.partial.firstIndex(of: 0x0A) {
                    output.lines.append(String(decoding: output.partial[..<end], as: UTF8.self))
                    output.partial.removeFirst(end + 1)
                }
            }
        }
    }

    /// Gives it something to do.
    package func tell(_ command: String) {
        try? process.input?.write(contentsOf: Data("\(command)\n".utf8))
    }

    /// What came of the next command; `nil` when the process has ended.
    package func answer() async -> String? {
        await output.wait { $0.lines.count > $0.taken || $0.hasEnded }
        return output.update { output in
            guard output.taken < output.lines.count else { return nil }
            output.taken += 1
            return output.lines[output.taken - 1]
        }
    }

    package func ask(_ command: String) async -> String? {
        tell(command)
        return await answer()
    }

    package func kill() { process.signal(SIGKILL) }

    /// Stops it, and returns when it stands still.
    package func stop() async throws {
        process.signal(SIGSTOP)
        try await offPool { [process] in process.waitUntilStopped() }
    }

    package func goOn() { process.signal(SIGCONT) }
}
