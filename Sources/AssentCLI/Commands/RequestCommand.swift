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

            Example:  assent request POST https://localhost:8444/transfers --json \
            '{"to":"Bob","amount":"200.00","currency":"EUR"}'
            """)

    @Argument(help: "GET, POST, PUT, PATCH or DELETE.")
    var method: String

    @Argument(help: "The URL.")
    var url: String

    @OptionGroup var client: ClientOptions

    @Option(name: .long, help: "JSON to send, exactly as it is written.")
    var json: String?

    @Option(name: .long, help: "A file whose content is sent; its media type by --content-type.")
    var dataFile: String?

    @Option(name: .long, help: "The media type of --data-file.")
    var contentType = "application/octet-stream"

    @Option(name: .long, help: "Ask what became of an approved request: the id that the error named.")
    var ask: String?

    @Flag(name: .shortAndLong, help: "Show the reply's status and header fields.")
    var include = false

    func validate() throws {
        guard HTTPRequest.Method(method.uppercased()) != nil else { throw ValidationError("\(method) is no method") }
        guard json == nil || dataFile == nil else { throw ValidationError("use --json or --data-file, not both") }
        if let json {
            do { _ = try JSONValue.parse(json) } catch { throw ValidationError("--json: \(error.explanation)") }
        }
    }

    func run() async throws {
        // The body is what goes to standard output, so people are spoken to on standard error.
        let console = Console(json: true)
        try await Outcome.run(console) {
            let assent = try client.load().assent()
            let call = try call()
            let reply: HTTPReply
            if let ask {
                reply = try await assent.ask(call, about: PendingRequest(argument: ask))
            } else {
                let approver = TerminalApproval(console: console)
                reply = try await assent.send(call) { try approver.answer(&$0) }
            }
            if include { show(reply, console) }
            console.raw(try await reply.body.collect(upTo: 64 << 20))
            await assent.shutdown()
            guard (200..<300).contains(reply.status) else {
                console.warn("\nThe server answered \(reply.status).")
                throw ExitCode(reply.status == 403 ? 2 : 1)
            }
        }
    }

    private func call() throws -> ResourceCall {
        var body: HTTPBody?
        var headers = HTTPFields()
        if let json {
            body = HTTPBody(json)
            headers[.contentType] = "application/json"
        }
        if let dataFile {
            guard let data = FileManager.default.contents(atPath: dataFile) else {
                throw ValidationError("\(dataFile) cannot be read")
            }
            body = HTTPBody([UInt8](data))
            headers[.contentType] = contentType
        }
        return ResourceCall(HTTPRequest.Method(method.uppercased()) ?? .get, url, headers: headers, body: body)
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
    let console: Console

    /// Answers a step of an approval.
    func answer(_ approval: inout Approval) throws -> StepAction {
        if approval.isFirstStep || approval.step[MetadataCallback.self] != nil {
            console.say(console.styled("You are asked to approve:", .bold))
            for field in approval.display {
                console.say(
                    "  \(DisplayText.escapedForTerminal(field.label)): "
                        + console.styled(DisplayText.escapedForTerminal(field.value), .bold))
            }
            console.say("  \(approval.method) \(DisplayText.escapedForTerminal(approval.url))")
            if case .notStated = approval.binding {
                console.say(console.styled("  The server does not say that it is for this request alone.", .yellow))
            }
        }
        var step = approval.step
        // What a transaction's page says in its own text is what the lines above say, checked against the request.
        let action = try TerminalAnswers(console: console).answer(&step, showingTexts: approval.display.isEmpty)
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
