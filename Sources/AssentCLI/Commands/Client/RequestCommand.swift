import ArgumentParser
import Assent
import Foundation
import HTTPTypes

/// `assent request`
struct RequestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "request", abstract: "Call a protected resource; when it wants your approval, be asked here.",
        discussion: """
            The reply's body goes to standard output, everything else to standard error. Exit status: 0 a 2xx reply, 1 another \
            reply or a failure, 2 refused or declined, 3 unknown whether it had an effect: then run it again with --ask.

            Example:  assent request POST https://localhost:8444/transfers --data \
            '{"to":"Bob","amount":"200.00","currency":"EUR"}'
            """)

    @Argument(
        help: "GET, POST, PUT, PATCH, HEAD or DELETE.",
        completion: .list(["GET", "POST", "PUT", "PATCH", "HEAD", "DELETE"]))
    var method: String

    @Argument(help: "The URL.")
    var url: String

    @OptionGroup var client: ClientOptions

    @Option(
        name: .long, help: "The body to send, exactly as it is written: JSON unless --content-type names another type.")
    var data: String?

    @Option(
        name: .long, help: "A file whose content is sent, or - for standard input; questions then go to the terminal.",
        completion: .file())
    var dataFile: String?

    @Option(
        name: .long,
        help: "The media type of what is sent. Default: application/json with --data, else application/octet-stream.")
    var contentType: String?

    @Option(
        name: [.customShort("H"), .long],
        help: "A header field to send as well, 'Name: value'. Nothing secret: others can see a command line.")
    var header: [String] = []

    @Option(name: .long, help: "Ask what became of an approved request: the id that the error named.")
    var ask: String?

    @Flag(name: .shortAndLong, help: "Show the reply's status and header fields.")
    var include = false

    /// The most that is read from a file or from standard input.
    private static let bodyLimit = 64 << 20

    private var isJSON: Bool { (contentType ?? "application/json").hasPrefix("application/json") }

    func validate() throws {
        guard HTTPRequest.Method(method.uppercased()) != nil else {
            throw ValidationError("\(method) is not an HTTP method.")
        }
        guard data == nil || dataFile == nil else { throw ValidationError("Use --data or --data-file, not both.") }
        guard contentType == nil || data != nil || dataFile != nil else {
            throw ValidationError("--content-type belongs to --data or --data-file.")
        }
        if let data, isJSON {
            do { _ = try JSONValue.parse(data) } catch {
                throw ValidationError("--data: \(error.explanation) Name another type with --content-type.")
            }
        }
        _ = try fields()
    }

    func run() async throws {
        // The body is what goes to standard output, so people are spoken to on standard error.
        let console = Console(json: true)
        try await Outcome.run(console, reportsErrors: false) {
            // Where standard input is the body, nobody types there.
            let prompt = dataFile == "-" ? Prompt(input: .terminal()) : Prompt()
            let call = try call()
            let assent = try client.load(asking: prompt).assent()
            let reply: HTTPReply
            if let ask {
                reply = try await assent.ask(call, about: PendingRequest(argument: ask))
            } else {
                let approver = TerminalApproval(console: console, prompt: prompt)
                do {
                    reply = try await assent.send(call) { try approver.answer(&$0) }
                } catch let error as JourneyError where error.code == .sessionTimedOut {
                    throw CommandFailure(
                        "The approval took too long, and nothing was approved. Run the command again.",
                        status: .refused)
                }
            }
            if include { show(reply, console) }
            let body = try await reply.body.collect(upTo: 64 << 20)
            console.raw(body)
            await assent.shutdown()
            if ask != nil, reply.status == 409, Self.isUnknown(body) {
                console.warn(
                    "\nThe gateway does not know whether the request had an effect. Ask the service itself, before you "
                        + "repeat it.")
                throw ExitCode(Outcome.Status.unknown.rawValue)
            }
            guard (200..<300).contains(reply.status) else {
                console.warn("\nThe server answered \(reply.status).")
                throw ExitCode(reply.status == 403 ? 2 : 1)
            }
        }
    }

    /// Whether the gateway's answer about an approved request says that nobody knows what became of it.
    static func isUnknown(_ body: [UInt8]) -> Bool {
        let outcome = (try? JSONValue.parse(body))?["outcome"]?["state"]?.string
        // `taken`: nobody knows yet whether it was forwarded.
        return outcome.map { ["taken", "forwarded", "unknown"].contains($0) } ?? false
    }

    /// What is sent.
    func call() throws -> ResourceRequest {
        var headers = try fields()
        var body: HTTPBody?
        if let data { body = HTTPBody(data) }
        if let dataFile { body = HTTPBody([UInt8](try Self.content(of: dataFile))) }
        if let contentType {
            headers[.contentType] = contentType
        } else if body != nil, headers[.contentType] == nil {
            headers[.contentType] = data == nil ? "application/octet-stream" : "application/json"
        }
        return ResourceRequest(
            path: url, method: HTTPRequest.Method(method.uppercased()) ?? .get, body: body, headers: headers)
    }

    /// What `--header` says.
    private func fields() throws -> HTTPFields {
        var fields = HTTPFields()
        for text in header {
            let name = text.prefix { $0 != ":" }
            let value = text.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
            guard name.count < text.count, let name = HTTPField.Name(String(name)), HTTPField.isValidValue(value) else {
                throw ValidationError("--header is 'Name: value'; \(text.debugDescription) is not.")
            }
            guard name != .contentType || contentType == nil else {
                throw ValidationError("--content-type and --header both name the media type: use one.")
            }
            fields.append(HTTPField(name: name, value: value))
        }
        return fields
    }

    private static func content(of file: String) throws -> Data {
        var data = Data()
        do {
            let handle = try file == "-" ? .standardInput : FileHandle(forReadingFrom: URL(fileURLWithPath: file))
            while data.count <= bodyLimit, let more = try handle.read(upToCount: 1 << 16), !more.isEmpty {
                data += more
            }
        } catch {
            throw CommandFailure.unreadable(file == "-" ? "Standard input" : file, error, "Nothing was sent.")
        }
        guard data.count <= bodyLimit else {
            throw CommandFailure("\(file) has more than \(bodyLimit >> 20) MiB. Nothing was sent.")
        }
        return data
    }

    private func show(_ reply: HTTPReply, _ console: Console) {
        console.say("HTTP \(reply.status)")
        for field in reply.response.headerFields where field.name != .setCookie {
            console.say("\(field.name): \(DisplayText.escapedForTerminal(field.value))")
        }
    }
}

/// Shows what is to be approved, and asks.
struct TerminalApproval: Sendable {
    private let console: Console
    private let answers: TerminalAnswers

    /// What was shown: a step that waits comes again every few seconds.
    private let shown = Locked<[DisplayField]?>(nil)

    init(console: Console, prompt: Prompt = Prompt()) {
        self.console = console
        answers = TerminalAnswers(console: console, prompt: prompt)
    }

    /// What is shown of a field.
    static func line(_ field: DisplayField, _ console: Console) -> String {
        "  \(DisplayText.escapedForTerminal(field.label)): "
            + console.styled(DisplayText.setOff(DisplayText.escapedForTerminal(field.value)), .bold)
    }

    /// Answers a step of an approval.
    func answer(_ approval: inout Approval) throws -> StepAction {
        let isKnown = approval.waiting != nil && shown.withLock { $0 } == approval.display
        if approval.isFirstStep || (approval.step[MetadataCallback.self] != nil && !isKnown) {
            shown.withLock { $0 = approval.display }
            console.say(console.styled("You are asked to approve:", .bold))
            for field in approval.display { console.say(Self.line(field, console)) }
            console.say("  \(approval.method) \(DisplayText.escapedForTerminal(approval.url))")
            if case .notStated = approval.binding {
                console.say(console.styled("  The server does not say that it is for this request alone.", .yellow))
            }
        }
        var step = approval.step
        // What a transaction's page says in its own text is what the lines above say, checked against the request.
        let action = try answers.answer(&step, showingTexts: approval.display.isEmpty)
        approval.step = step
        // The first button approves; another button declines.
        if let confirmation = step[ConfirmationCallback.self], let chosen = confirmation.selectedValue,
            chosen != confirmation.options.first?.value
        {
            return .decline
        }
        return action
    }
}
