import ArgumentParser
import AssentConfiguration
import AssentCore
import AssentEngine
import AssentOTP
import AssentServer
import Foundation
import Logging
import ServiceLifecycle
import UnixSignals

/// `assent serve`
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the server and the gateway that a YAML file describes.",
        discussion: """
            The first start makes the database, the master key and, with 'development: true', a CA and accounts. It writes \
            client.yaml for 'assent login' and, where there are apps, app.yaml for 'assent register'; a later start writes \
            them again when their content has changed. Stop it with Ctrl-C or SIGTERM: requests in progress are finished \
            first. A second signal cuts that short; the exit status is then 1.

            With --gateway-only it runs a gateway alone: its file names the server that decides (engine:) instead of realms \
            and a database, and it makes no files.
            """)

    @Option(name: .shortAndLong, help: "The configuration file.", completion: .file(extensions: ["yaml", "yml"]))
    var config: String

    @Flag(
        name: .long,
        help: "Run a gateway alone, which asks another server about each request. The file has engine: and gateway:.")
    var gatewayOnly = false

    @Option(
        name: .long, help: "How much is logged: \(ServeCommand.levels).",
        completion: .list(Logger.Level.allCases.map(\.rawValue)))
    var logLevel: String = "notice"

    private static let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")

    func validate() throws {
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError("--log-level is one of \(Self.levels).")
        }
    }

    func run() async throws {
        // A file that may not grow is an error of one write, not the end of the process.
        signal(SIGXFSZ, SIG_IGN)
        let log = LogStream()
        let console = Console(warnings: log)
        let lines = LogLines { log.write($0 + "\n") }
        var logger = Logger(label: "assent", factory: { StreamLogHandler(label: $0, stream: lines) })
        logger.logLevel = Logger.Level(rawValue: logLevel) ?? .notice
        do {
            if gatewayOnly { return try await serveGateway(console, logger) }
            let configuration = try loaded()
            let server = try await IdentityServer(configuration: configuration, logger: logger)
            let group = ServiceGroup(
                configuration: .init(
                    services: [
                        .init(service: server),
                        .init(
                            service: Announcement(server: server, configuration: configuration, console: console),
                            // Without a name the group writes the whole service into the log, the configuration with
                            // it.
                            successTerminationBehavior: .ignore, serviceName: "Announcement"),
                    ], logger: logger))
            try await Self.run(group)
            try console.finish()
        } catch let error as ConfigurationError {
            // By the log: where nobody takes what it says, the console would wait for ever.
            log.write("assent serve: \(error)\n")
            throw ExitCode(78)
        } catch is CutShort {
            log.write("assent serve: stopped at the second signal, without waiting for requests in progress\n")
            throw ExitCode(1)
        }
    }

    private func loaded() throws -> ServerConfiguration {
        var configuration = try ServerConfiguration.load(file: config)
        if let seconds = LeastLimit.ofServing() { configuration.waitForOthers(seconds: seconds) }
        return configuration
    }

    private func serveGateway(_ console: Console, _ logger: Logger) async throws {
        var configuration = try GatewayServerConfiguration.load(file: config)
        if let seconds = LeastLimit.ofServing() { configuration.waitForOthers(seconds: seconds) }
        let gateway = try GatewayServer(configuration: configuration, logger: logger)
        let group = ServiceGroup(
            configuration: .init(
                services: [
                    .init(service: gateway),
                    .init(
                        service: GatewayAnnouncement(gateway: gateway, console: console),
                        successTerminationBehavior: .ignore, serviceName: "GatewayAnnouncement"),
                ], logger: logger))
        try await Self.run(group)
        try console.finish()
    }

    private struct CutShort: Error {}

    /// Runs until a signal ends it; the next one ends the waiting, too.
    private static func run(_ group: ServiceGroup) async throws {
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            tasks.addTask {
                var first: ContinuousClock.Instant?
                for await _ in signals {
                    guard let first else {
                        await group.triggerGracefulShutdown()
                        // Only now: on a busy machine that has taken a while, in which the same signal has come again.
                        first = .now
                        continue
                    }
                    // A signal to the process and to its group arrives twice and is meant once.
                    if first.duration(to: .now) > .seconds(1) { throw CutShort() }
                }
            }
            try await tasks.next()
            tasks.cancelAll()
        }
    }
}

/// Tells the operator where a gateway alone is, once it listens.
private struct GatewayAnnouncement: Service {
    let gateway: GatewayServer
    let console: Console

    func run() async throws {
        guard let url = try? await gateway.url else { return }
        _ = await Saying.run {
            console.say("Gateway:  \(url)")
            try? console.finish()
        }
    }
}

/// Says something on a thread of its own. A reader that stands still (a terminal after Ctrl-S, a program behind a pipe
/// that was stopped) holds up this thread alone, and neither requests nor, for long, the stop. Nothing is left out for
/// it: some of it is shown once.
private enum Saying {
    /// How long a stop waits for what is being said: a reader that takes it gets all of it.
    private static let patience = Duration.seconds(LeastLimit.ofServing() ?? 2)

    /// Waits until everything was said, or until the stop has waited long enough.
    ///
    /// - Returns: whether everything was said.
    static func run(_ say: @escaping @Sendable () -> Void) async -> Bool {
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        Thread.detachNewThread {
            say()
            end.finish()
        }
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await _ in ended {}
                return !Task.isCancelled
            }
            group.addTask {
                // Cancelled as soon as everything was said, and by a second signal.
                guard (try? await gracefulShutdown()) != nil else { return false }
                try? await Task.sleep(for: patience)
                return false
            }
            let isSaid = await group.next() ?? false
            group.cancelAll()
            return isSaid
        }
    }
}

/// Tells the operator where the server is and what to type next, once it listens.
private struct Announcement: Service {
    let server: IdentityServer
    let configuration: ServerConfiguration
    let console: Console

    /// Whether installations of the app register with an initial access token.
    private static func needsToken(_ file: ClientFile, _ configuration: ServerConfiguration) -> Bool {
        let apps = configuration.realms.first { $0.name == file.realm }?.apps ?? []
        return apps.first { $0.id == file.clientID }?.admission == .token
    }

    func run() async throws {
        guard let endpoints = try? await server.endpoints else { return }
        let isSaid = await Saying.run { announce(endpoints) }
        if !isSaid, !endpoints.accounts.isEmpty { console.warn(Self.lost) }
    }

    private static let lost =
        "The credentials that were shown once are lost. Set other ones: assent users password, assent users totp."

    private func announce(_ endpoints: Endpoints) {
        console.say("Server:   \(endpoints.server)")
        if let gateway = endpoints.gateway { console.say("Gateway:  \(gateway)") }
        for (realm, issuer) in configuration.issuers(at: endpoints.server) {
            console.say("Issuer:   \(issuer)   (realm \(realm))")
        }
        for account in endpoints.accounts {
            console.say("")
            console.say("Account \(account.username) in realm \(account.realm), shown this once:")
            console.say("  password   \(account.password.reveal())")
            console.say("  TOTP seed  \(Base32.encode(account.totpSeed.revealBytes()))")
            if let uri = try? OTPAuthURI(issuer: "Assent", account: account.username, secret: account.totpSeed).uri() {
                console.say("  for apps   \(uri.reveal())")
                console.draw(qrCodeOf: uri.reveal())
            }
            console.say("  A code:    oathtool --totp -b -   (of Debian's package oathtool)")
            console.say("             Paste the seed there: others can see a command line.")
        }
        if let file = endpoints.bootstrapFile {
            console.say("")
            console.say("This server does not have an administrator yet. Sign in, then run:")
            console.say("  assent admin bootstrap --token-file \(file)")
        }
        if let file = ClientFile(endpoints: endpoints, configuration: configuration) {
            let path = configuration.dataDirectory + "/client.yaml"
            let isNew = !FileManager.default.fileExists(atPath: path)
            let isWritten = file.offer(at: path) { console.warn($0) }
            console.say("")
            if isWritten, !isNew {
                console.say("\(path) has changed: everybody who signed in with the old file needs the new one.")
            }
            if (try? ClientFile.load(path)) == nil, (try? ClientFile.load(path, acceptsOnePin: true)) != nil {
                console.warn(
                    "\(path) has one pin only, without a backup, and no client accepts that: the issuer's certificate is not in "
                        + "the file of tls.certificate. Append it there and start again, or move the pin to 'singlePin:'."
                )
            }
            console.say("Next, in another terminal:  assent login --config \(path)")
            if let app = ClientFile.ofApp(endpoints: endpoints, configuration: configuration) {
                let path = configuration.dataDirectory + "/app.yaml"
                _ = app.offer(at: path) { console.warn($0) }
                let needsToken = Self.needsToken(app, configuration)
                console.say(
                    "An installation that is a client of its own:  assent register --config \(path)"
                        + (needsToken ? " --token-file token.txt" : ""))
                if needsToken {
                    console.say(
                        "  (an administrator makes its token:  "
                            + "assent admin registrations token --app \(app.clientID) --output token.txt)")
                }
            }
        }
        if (try? console.finish()) == nil, !endpoints.accounts.isEmpty { console.warn(Self.lost) }
    }
}
