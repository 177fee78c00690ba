import ArgumentParser
import Assent
import Foundation
import HTTPTypes

/// `assent request`
struct RequestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "request",
        abstract: "Call a resource as a user, as this installation or as nobody; be asked for your approval here.",
        discussion: """
            A path is appended to resources.base of the client's file; an absolute URL goes where it says. Only origins that the \
            file names under resources are called, and each gets only what the file says.

            The reply's body goes to standard output, everything else to standard error. With --json, standard output is \
            one JSON object: status, fields, body, bodyEncoding (json, text or base64) and authorization (the transaction \
            that you have approved, or null). Without a reply it has error and detail instead.

            Exit status: 0 a 2xx reply, 1 another reply or a failure, 2 refused or declined, 3 unknown whether it had an \
            effect: then run it again with --ask.

            Examples:  assent request GET /accounts --param year=2026

            assent request POST /transfers --data '{"to":"Bob","amount":"200.00","currency":"EUR"}'

            assent request --as device GET /app-info

            assent request --as nobody GET /status

            assent request --as implicit GET /greeting

            assent request --pin GET /accounts

            assent request POST /documents --multipart 'scan=@page 1.png' --param title=Contract

            assent request GET /statements/7 --download statement.pdf

            assent request --sealed GET /accounts

            assent request POST /transfers --param to=Bob --param amount=200.00 --json
            """)

    @Argument(
        help: "GET, POST, PUT, PATCH, HEAD or DELETE.",
        completion: .list(["GET", "POST", "PUT", "PATCH", "HEAD", "DELETE"]))
    var method: String

    @Argument(help: "A path below resources.base of the client's file, or an absolute URL.")
    var path: String

    @OptionGroup var client: ClientOptions

    @Option(
        name: .customLong("as"),
        help:
            "Whose call it is: user (who is signed in), implicit (a user whom this installation remembers, who types nothing), device (this installation, which has registered) or nobody."
    )
    var kind = RequestKind.user

    @Option(
        name: .long,
        help:
            "With --as device or implicit: what access to ask for; may be repeated. Default: registration.deviceScopes or implicitScopes of the client's file."
    )
    var scope: [String] = []

    @Flag(
        name: .long,
        help:
            "Sign in first, with the PIN of a user whom this installation remembers. The login ends with the command.")
    var pin = false

    @Option(
        name: .shortAndLong,
        help: "With --pin or --as implicit: the user, where the installation remembers several.")
    var username: String?

    @OptionGroup var content: RequestContentOptions

    @Option(
        name: [.customShort("H"), .long],
        help: "A header field to send as well, 'Name: value'. Nothing secret: others can see a command line.")
    var header: [String] = []

    @Option(name: .long, help: "Ask what became of an approved request: the id that the error named.")
    var ask: String?

    @Option(
        name: .long,
        help:
            "Write the content of a 2xx reply to this file, which only you may read. It is there whole or not at all.",
        completion: .file())
    var download: String?

    @Flag(
        name: .long,
        help:
            "Demand that the request is sealed inside of TLS (payloadEncryption of the client's file), and show on standard error what leaves and comes: kind, length, and the session's age."
    )
    var sealed = false

    @Flag(
        name: .long,
        help:
            "Let an absolute URL go to an origin whose calls are not sealed, although payloadEncryption of the client's file seals others."
    )
    var unsealed = false

    @Flag(name: .shortAndLong, help: "Show the reply's status and header fields, as HEAD always does.")
    var include = false

    @Flag(
        name: .long,
        help: "Print the result as one JSON object: status, fields, body, bodyEncoding, authorization.")
    var json = false

    func validate() throws {
        guard let name = Self.method(method) else {
            throw ValidationError("\(method) is not GET, POST, PUT, PATCH, HEAD or DELETE.")
        }
        guard [.device, .implicit].contains(kind) || scope.isEmpty else {
            throw ValidationError("--scope belongs to --as device and --as implicit.")
        }
        guard kind == .user || !pin else { throw ValidationError("--pin signs a user in: leave --as out.") }
        guard username == nil || isRemembered else {
            throw ValidationError("--username belongs to --pin and --as implicit.")
        }
        guard kind == .user || ask == nil else { throw ValidationError("--ask is about a user's request.") }
        guard !json || !include else {
            throw ValidationError("--json has the status and the header fields: leave --include out.")
        }
        guard !sealed || !unsealed else { throw ValidationError("Use --sealed or --unsealed, not both.") }
        if let download {
            guard name == .get else { throw ValidationError("--download is for GET, and not for \(name).") }
            guard ask == nil else { throw ValidationError("Use --ask or --download, not both.") }
            guard !download.isEmpty, download != "-" else {
                throw ValidationError("--download needs a file; without it the content goes to standard output.")
            }
        }
        try content.check(name, header)
    }

    func run() async throws {
        // The reply is what goes to standard output, so people are spoken to on standard error.
        let console = Console(json: true)
        try await Outcome.run(console, reportsErrors: json) {
            // Where standard input is the body, nobody types there.
            let prompt = content.dataFile == "-" ? Prompt(input: .terminal()) : Prompt()
            // A file that cannot be read is told before anybody is asked for a passphrase.
            let request = try request()
            try await perform(try client.load(asking: prompt), prompt, console, sending: request)
        }
    }

    /// Sends the request, and writes what came back.
    func perform(
        _ profile: ClientProfile, _ prompt: Prompt, _ console: Console, sending request: ResourceRequest,
        transport: (any HTTPTransport)? = nil
    ) async throws {
        let place = download.map { DownloadPlace($0) }
        try place?.check()
        try check(base: profile.file.resourceBase)
        let profile = try shown(profile, request, on: console)
        let remembered = RememberedSignIn(profile: profile, console: console, prompt: prompt, username: username)
        let assent =
            isRemembered
            ? try await remembered.assent(transport: transport) : try profile.assent(transport: transport)
        let answer: RequestAnswer
        do {
            if pin { _ = try await remembered.signIn(assent) }
            if kind == .implicit { try await remembered.authenticate(assent, scopes: scope) }
            answer = try await send(request, to: place, by: assent, profile, prompt, console)
        } catch {
            await assent.shutdown()
            throw error
        }
        // An error may mean that the outcome is asked for later: then the session stays until it expires.
        if pin { await assent.endLogin() }
        await assent.shutdown()
        try report(answer, console)
    }

    /// The profile, which shows what is sealed where ``sealed`` says so.
    ///
    /// - Throws: ``CommandFailure`` when the request would not be sealed then.
    func shown(_ profile: ClientProfile, _ request: ResourceRequest, on console: Console) throws -> ClientProfile {
        guard sealed else { return profile }
        let demanded = SealingDemand(profile: profile)
        try demanded.check(request)
        return demanded.showing(on: console)
    }

    /// Whether a user is signed in whom this installation remembers.
    private var isRemembered: Bool { pin || kind == .implicit }

    /// What is sent.
    func request() throws -> ResourceRequest {
        var request = MutableResourceRequest(try content.request(path, Self.method(method) ?? .get, header))
        request.allowsUnsealed = unsealed
        return request.immutable
    }

    func check(base: String?) throws {
        guard base != nil || path.contains("://") else {
            throw CommandFailure(
                "\(path) is a path, and the client's file does not say what paths are appended to. Nothing was sent. Name an "
                    + "absolute URL, or write resources.base into the file, for example base: https://api.bank.example/v1"
            )
        }
    }

    /// Sends the request by an app in which somebody has signed in.
    func send(
        _ request: ResourceRequest, to place: DownloadPlace?, by assent: Assent, _ profile: ClientProfile,
        _ prompt: Prompt, _ console: Console
    ) async throws -> RequestAnswer {
        if let ask { return try await RequestAnswer(assent.ask(request, about: PendingRequest(argument: ask))) }
        if kind == .device { try await authenticate(assent, profile) }
        let approver = TerminalApproval(console: console, prompt: prompt)
        let (user, device) = (assent.userClient, assent.deviceClient)
        guard let place else {
            let response =
                switch kind {
                case .user: try await user.sendAuthenticatedRequest(request) { try approver.answer(&$0) }
                case .implicit: try await user.sendImplicitRequest(request)
                case .device: try await device.sendRequest(request)
                case .nobody: try await device.sendUnauthenticatedRequest(request)
                }
            return RequestAnswer(response)
        }
        let file = request.download(to: place.path)
        let bar = ProgressBar(console)
        defer { bar.end() }
        let response =
            switch kind {
            case .user:
                try await user.sendAuthenticatedRequest(file, progress: bar.draw) { try approver.answer(&$0) }
            case .implicit: try await user.sendImplicitRequest(file, progress: bar.draw)
            case .device: try await device.sendRequest(file, progress: bar.draw)
            case .nobody: try await device.sendUnauthenticatedRequest(file, progress: bar.draw)
            }
        return RequestAnswer(response)
    }

    /// Gets the installation's token, which is in the memory of this process alone.
    private func authenticate(_ assent: Assent, _ profile: ClientProfile) async throws {
        guard let registration = assent.registration else {
            throw CommandFailure(
                "This client's installations do not register, so the installation has no token of its own. Nothing was sent. "
                    + "Name the file of an app with --config, and run 'assent register' with it first.")
        }
        // Opens the vault, whose own errors say more than those of a call.
        _ = try await registration.current()
        let known = profile.file.registration?.deviceScopes ?? []
        try await assent.deviceClient.authenticateDevice(scopes: scope.isEmpty ? known : scope)
    }

    /// Writes what came back.
    ///
    /// - Throws: `ExitCode` unless it is a 2xx reply.
    func report(_ answer: RequestAnswer, _ console: Console) throws {
        if json {
            console.emit(answer.json)
        } else {
            if include || Self.method(method) == .head { answer.show(on: console) }
            if answer.file == nil { console.raw(answer.body) }
        }
        let isSuccess = (200..<300).contains(answer.status)
        // Sets the words off from a body, which may not end its last line. The one object has ended it.
        let gap = json ? "" : "\n"
        if let file = answer.file { console.say("\(file) is complete.") }
        if ask != nil, answer.status == 409, Self.isUnknown(answer.body) {
            console.warn(
                "\(gap)The gateway does not know whether the request had an effect. Ask the service itself, before you "
                    + "repeat it.")
            throw ExitCode(Outcome.Status.unknown.rawValue)
        }
        guard isSuccess else {
            console.warn("\(gap)The server answered \(answer.status).")
            if answer.refusesKind {
                console.warn("The resource is not for calls of this kind (\(kind.rawValue)): see --as.")
            }
            if download != nil { console.warn("Nothing was downloaded.") }
            throw ExitCode(answer.status == 403 ? 2 : 1)
        }
    }

    /// Whether the gateway's answer about an approved request says that nobody knows what became of it.
    static func isUnknown(_ body: [UInt8]) -> Bool {
        let outcome = (try? JSONValue.parse(body))?["outcome"]?["state"]?.string
        // `taken`: nobody knows yet whether it was forwarded.
        return outcome.map { ["taken", "forwarded", "unknown"].contains($0) } ?? false
    }

    private static func method(_ text: String) -> HTTPRequest.Method? {
        HTTPRequest.Method(text.uppercased()).flatMap { ResourceRequest.methods.contains($0) ? $0 : nil }
    }
}

/// Whose call it is, as `--as` has it.
enum RequestKind: String, ExpressibleByArgument, CaseIterable, Sendable {
    case user
    case implicit
    case device
    case nobody
}
