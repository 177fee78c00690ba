import AssentCore
import AssentTokens
import AssentVault
import Logging
import Testing
import TokenTableSupport

@Suite("What the SDK logs of tokens")
struct SecretLogTests {
    /// Keeps everything that is logged, with its metadata.
    private struct Collecting: LogHandler {
        let lines: Locked<[String]>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let metadata = metadata.merging(event.metadata ?? [:]) { $1 }
            lines.withLock { $0.append("\(event.level) \(event.message) \(metadata)") }
        }
    }

    @Test("On no way that tokens go is one of them in the log: own and others' renewals, refusals, sign-outs")
    func secrecy() async throws {
        let lines = Locked<[String]>([])
        let (world, _) = try await ScriptedProvider.world()
        let store = MemorySecretStore()
        let managers = try (0..<2).map { _ in
            TokenManager(
                configuration: world.configuration, transport: try world.transport(), store: store,
                logger: Logger(label: "test") { _ in Collecting(lines: lines) })
        }
        var secrets = [world.sessions.mine, world.sessions.others].map { $0.token.reveal() }
        func note(_ tokens: TokenSet) {
            secrets += [tokens.accessToken, tokens.refreshToken].compactMap { $0?.reveal() }
        }
        try await managers[0].install(world.sessions.mine)
        let known = try await managers[0].tokens()
        note(known)
        note(try await managers[1].tokens())
        note(try await managers[0].refresh())
        // Somebody else has renewed what was refused here.
        note(try await managers[1].tokens(rejecting: known.accessToken))
        note(try await managers[1].refresh())
        // A refresh token that somebody has stolen and used; a session of somebody else; nobody there at the end.
        let stolen = try #require(try await managers[0].storedTokens()?.refreshToken)
        try await world.spend(stolen, at: try await managers[0].metadata().tokenEndpoint)
        if let tokens = try? await managers[0].refresh() { note(tokens) }
        try await managers[0].install(world.sessions.others)
        if let tokens = try? await managers[0].tokens() { note(tokens) }
        await world.relay.stop()
        _ = try? await managers[1].refresh()
        _ = await managers[0].signOut()
        let text = lines.withLock { $0.joined(separator: "\n") }
        #expect(!text.isEmpty, "nothing was logged, so nothing was shown")
        for secret in secrets { #expect(!text.contains(secret), "\(text)") }
    }
}
