import ArgumentParser
import Assent
import AssentCore
import AssentEngine
import AssentServer

/// `assent policy test`
struct PolicyTestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test",
        abstract: "Say what the policies of a server's file would decide on a request, and why.",
        discussion: """
            Names for each policy the field that keeps it from applying, and shows what the user would be asked to \
            approve. Nothing is made, stored or sent: the file alone is read. Exit status: 0 the request would be \
            granted, also after an approval or another sign-in; 2 it would not.
            """)

    @OptionGroup var server: ServerFileOptions

    @Option(help: "The user who sends the request. Default: somebody who is not signed in.")
    var user: String?

    @Option(help: "The realm. Default: the only one of the file.")
    var realm: String?

    @Option(help: "The policy set. Default: the only one of the realm.")
    var policySet: String?

    @Option(help: "The level of the user's session.")
    var level: Int = 0

    @Option(help: "The journey that the user has signed in by.")
    var journey: String?

    @Option(help: "How many minutes ago that was.")
    var minutes: Int = 0

    @Option(help: "The address that the request comes from. Default: not known.")
    var address: String?

    @Option(help: "How many days ago the user was in the network of that address. Default: never.")
    var networkDays: Int?

    @Option(help: "A scope of the access token that comes with it; may be repeated. Default: no token.")
    var scope: [String] = []

    @Option(help: "The language of what the user is shown, for example de.")
    var language = "en"

    @Option(help: "The body.")
    var data: String?

    @Option(help: "The media type of the body.")
    var contentType = "application/json"

    @Argument(help: "The method.")
    var method: String

    @Argument(help: "The URL, as the gateway's clients write it.")
    var url: String

    func validate() throws {
        guard address.map({ IPAddress($0) != nil }) ?? true else {
            throw ValidationError("--address is an IPv4 or IPv6 address.")
        }
        guard (0...525_600).contains(minutes) else { throw ValidationError("--minutes is 0 to 525600.") }
        guard networkDays.map({ (0...365).contains($0) && address != nil }) ?? true else {
            throw ValidationError("--network-days is 0 to 365, and needs --address.")
        }
        do { _ = try CanonicalResource(url) } catch { throw ValidationError("The URL \(error).") }
    }

    func run() async throws {
        let console = Console(json: server.json)
        var result = PolicyTrial.Result.denied
        try await Outcome.run(console) {
            let trial = try self.trial.run(
                file: server.config, url: CanonicalResource(url),
                content: RequestContent(
                    method: method.uppercased(), mediaType: data == nil ? nil : contentType,
                    body: Array((data ?? "").utf8)))
            result = trial.result
            if console.json { console.emit(trial.json) } else { for line in trial.lines { console.say(line) } }
        }
        if result == .denied || result == .refused { throw ExitCode(Outcome.Status.refused.rawValue) }
    }

    private var trial: ConfiguredPolicyTrial {
        var trial = ConfiguredPolicyTrial()
        trial.realm = realm
        trial.policySet = policySet
        trial.language = language
        trial.caller.user = user
        trial.caller.authLevel = level
        trial.caller.journey = journey
        trial.caller.address = address.flatMap(IPAddress.init)
        trial.caller.networkAge = networkDays.map { Int64($0) * 86_400 }
        trial.caller.scopes = scope.isEmpty ? nil : Set(scope)
        trial.caller.sessionAge = Int64(minutes) * 60
        return trial
    }
}

extension PolicyTrial {
    /// What a person reads.
    var lines: [String] {
        findings.map { finding in
            "\(finding.field == nil ? "✓" : "–") \(finding.policy): "
                + (finding.field.map { "\($0): " } ?? "") + finding.reason
        } + ["\(result.rawValue): \(explanation)"] + shown.map { "  \($0.label): \($0.value)" }
    }

    /// What a script reads.
    var json: JSONValue {
        [
            "result": .string(result.rawValue), "explanation": .string(explanation),
            "policies": .array(
                findings.map {
                    [
                        "name": .string($0.policy), "applies": .bool($0.field == nil),
                        "field": $0.field.map(JSONValue.string) ?? .null, "reason": .string($0.reason),
                    ]
                }),
            "shown": .array(shown.map { ["label": .string($0.label), "value": .string($0.value)] }),
        ]
    }
}
