import ArgumentParser
import AssentConfiguration
import AssentCore
import AssentDemo
import AssentOTP
import AssentServer
import Foundation
import Logging
import UnixSignals

/// `assent demo`
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Tell the whole story on this machine: sign in, step up a payment, spend it once.",
        discussion: """
            Starts the example bank, the server and its gateway on free ports with generated certificates and accounts, and \
            walks through what must work and what must not. Everything is real but the clock, which the story moves. Exit \
            status 0 only when every step came out as it must.
            """)

    @Option(name: .shortAndLong, help: "The configuration to run.", completion: .file(extensions: ["yaml", "yml"]))
    var config = DemoCommand.example

    @Option(
        name: .long, help: "Where the page with the sequence diagram is written. Default: where temporary files are.",
        completion: .file())
    var page: String?

    @Option(name: .long, help: "Where the diagram of one payment is written, as SVG.", completion: .file())
    var diagram: String?

    @Flag(name: .long, help: "Print the run as JSON; the narration then goes to standard error.")
    var json = false

    @Flag(name: .long, help: "Leave everything running afterwards, and print what to try.")
    var keep = false

    @Option(name: .long, help: "For how many minutes --keep keeps it running, at most 240. Default: 30.")
    var minutes: Int?

    /// The file in the repository that it runs by itself.
    static let example = "Examples/bank/assent.yaml"

    func validate() throws {
        guard (1...240).contains(minutes ?? 30) else { throw ValidationError("--minutes is from 1 to 240.") }
        guard minutes == nil || keep else { throw ValidationError("--minutes belongs to --keep.") }
    }

    func run() async throws {
        let console = Console(json: json)
        var logger = Logger.ofClient()
        logger.logLevel = .error
        let sources = DemoWorld.Sources(configurationFile: config, programs: Self.programs)
        var ofStory = sources
        ofStory.configure = { try $0.rememberUsersOfStory() }
        let clock = DemoClock()
        let narration = Narration(to: console)
        do {
            let world = try await DemoWorld.start(
                sources: ofStory, clock: clock, narration: narration, logger: logger)
            do {
                let story = try Story(world: world, clock: clock, narration: narration)
                try await story.tell()
                await world.stop()
                story.judgeEvidence()
            } catch {
                narration.tell(.check("the story goes on: \(error)", passed: false))
                await world.stop()
            }
            try writePage(narration, console: console)
        } catch let error as ConfigurationError {
            console.warn("assent demo: \(error)")
            if config == Self.example, !FileManager.default.fileExists(atPath: config) {
                console.warn("Run it in the directory of Assent's repository, or name that file there with --config.")
            }
            throw ExitCode(78)
        } catch let error as BankProcess.Failure {
            console.warn("assent demo: \(error)")
            throw ExitCode(1)
        }
        if json { console.emit(narration.json) }
        let failures = narration.failures
        console.say("")
        guard failures.isEmpty else {
            console.say(console.styled("\(failures.count) of \(narration.checkCount) checks failed.", .red))
            throw ExitCode(1)
        }
        console.say(console.styled("All \(narration.checkCount) checks came out as they must.", .green))
        try console.finish()
        if keep { try await keepRunning(sources, console: console, logger: logger) }
    }

    /// Where this program is, wherever its name was found: `argv[0]` need not be a path.
    private static var programs: URL {
        let own = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        return own.resolvingSymlinksInPath().deletingLastPathComponent()
    }

    private func writePage(_ narration: Narration, console: Console) throws {
        // One for each user: the next demo puts its own in place of this one.
        let name = "assent-demo-\(getuid()).html"
        let path = page ?? URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent(name).path
        let passed = narration.checkCount - narration.failures.count
        let drawing = SequencePage(
            title: "Assent: one payment, approved and spent once",
            subtitle:
                "This very run. \(passed) of \(narration.checkCount) checks came out as they must. No secret is on this page.",
            events: narration.events)
        try Data(drawing.html.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        console.say("")
        console.say("The sequence diagram of this run: \(path)")
        guard let diagram else { return }
        let payment = SequenceDrawing(events: narration.payment).svg(
            label: "One payment: refused with an advice, approved, repeated, paid once, and refused when sent again",
            isFile: true)
        try Data(payment.utf8).write(to: URL(fileURLWithPath: diagram), options: .atomic)
        console.say("The diagram of the payment: \(diagram)")
    }

    /// A second world with the machine's own clock, so that an authenticator's codes are right.
    private func keepRunning(_ sources: DemoWorld.Sources, console: Console, logger: Logger) async throws {
        let world = try await DemoWorld.start(sources: sources, clock: SystemClock(), logger: logger)
        guard let file = ClientFile(endpoints: world.endpoints, configuration: world.configuration) else { return }
        let path = world.directory + "/client.yaml"
        try Data(file.yaml.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        let gateway = world.endpoints.gateway ?? ""
        let account = world.account
        let uri = try? OTPAuthURI(issuer: "Assent", account: account.username, secret: account.totpSeed).uri()
        // Above the rest: it is higher than a small terminal, and what is typed must stay in sight.
        if let uri { console.draw(qrCodeOf: uri.reveal()) }
        console.say("")
        let minutes = minutes ?? 30
        console.say("Running for \(minutes) minutes (Ctrl-C ends it):")
        console.say("  server   \(world.endpoints.server)")
        console.say("  gateway  \(gateway)")
        console.say("  user     \(world.account.username)")
        console.say("  password \(world.account.password.reveal())")
        console.say("  TOTP     \(Base32.encode(world.account.totpSeed.revealBytes()))")
        if let uri { console.say("  for apps \(uri.reveal())") }
        console.say("")
        // As it was called: it need not be in the PATH.
        let program = CommandLine.arguments.first ?? "assent"
        if let warning = Self.warning() { console.say(warning) }
        console.say("Try, in another terminal, from the same directory:")
        console.say("  \(program) login --config \(path)")
        console.say("  \(program) request GET \(gateway)/accounts")
        console.say("  \(program) request --as nobody GET /status")
        console.say(
            #"  \#(program) request POST \#(gateway)/transfers --data '{"to":"Bob","amount":"200.00","currency":"EUR"}'"#
        )
        console.say("A code is accepted once: wait for the next before you approve. To get one:")
        console.say("  oathtool --totp -b -   (of Debian's package oathtool)")
        console.say("Paste the TOTP seed there: others can see a command line.")
        tellOfDevice(in: world, program, console)
        try tellOfApp(in: world, program, console)
        console.say("The same in a program, Snippets/FirstCall.swift:")
        console.say("  make first-call WITH=\"\(Self.firstCall(world.endpoints).joined(separator: " "))\"")
        await untilStopped(seconds: minutes * 60)
        await world.stop()
    }

    /// What those hear who have signed in at a server elsewhere: what they are told to type would take its place.
    static func warning(_ places: Places = Places()) -> String? {
        let path = places.configurationFile(profile: ClientProfile.usual)
        guard let kept = try? ClientFile.load(path), let origin = try? Origin(kept.server), !origin.host.isLoopback
        else { return nil }
        let server = DisplayText.escapedForTerminal(kept.server)
        return "You use \(server) already, and this login takes its place: to keep it, say --profile demo in each line."
    }

    /// What to type so that a device approves.
    private func tellOfDevice(in world: DemoWorld, _ program: String, _ console: Console) {
        console.say("To approve with a device instead, within five minutes of signing in:")
        console.say("  \(program) device invite        (prints a code, and asks for the digits that the device shows)")
        console.say("  \(program) device enroll CODE   (in another terminal, which is the device)")
        console.say("  \(program) device listen        (there, too; then pay again)")
        console.say("The device in a program, Snippets/FirstDevice.swift, with the code in place of CODE:")
        let values = Self.firstDevice(world.endpoints, in: world.directory + "/first-device") + ["CODE"]
        console.say("  make first-device WITH=\"\(values.joined(separator: " "))\"")
    }

    /// What to type so that an installation of its own calls in its own name.
    private func tellOfApp(in world: DemoWorld, _ program: String, _ console: Console) throws {
        guard let file = ClientFile.ofApp(endpoints: world.endpoints, configuration: world.configuration),
            let bootstrap = world.endpoints.bootstrapFile
        else { return }
        let path = world.directory + "/app.yaml"
        try Data(file.yaml.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        let token = world.directory + "/token.txt"
        console.say("An installation that is a client of its own (the first line makes the user an administrator):")
        console.say("  \(program) admin bootstrap --token-file \(bootstrap)")
        console.say(
            "  \(program) admin registrations token --count 2 --app \(file.clientID) --output \(token)")
        console.say("  \(program) register --profile app --config \(path) --token-file \(token)")
        console.say("  \(program) request --profile app --as device GET /app-info")
        console.say("The same in a program, Snippets/FirstResource.swift, which asks for the token in token.txt:")
        let values = Self.firstCall(world.endpoints) + [world.directory + "/first.key"]
        console.say("  make first-resource WITH=\"\(values.joined(separator: " "))\"")
    }

    /// What `Snippets/FirstCall.swift` wants to know of a server.
    static func firstCall(_ endpoints: Endpoints) -> [String] {
        [endpoints.server, endpoints.gateway ?? "", endpoints.authorityFile ?? ""] + endpoints.pins.map(\.description)
    }

    /// What `Snippets/FirstDevice.swift` wants to know, but for the code of an invite.
    static func firstDevice(_ endpoints: Endpoints, in directory: String) -> [String] {
        [directory, endpoints.authorityFile ?? ""] + endpoints.pins.map(\.description)
            + ["\(endpoints.server)/signing/realms/root/realms/alpha"]
    }

    private func untilStopped(seconds: Int) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(for: .seconds(seconds)) }
            group.addTask {
                let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
                for await _ in signals { return }
            }
            await group.next()
            group.cancelAll()
        }
    }
}
