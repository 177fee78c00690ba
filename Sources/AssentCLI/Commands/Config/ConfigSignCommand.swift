import ArgumentParser
import AssentCore
import AssentSigningProtocol
import AssentTrust
import Foundation

/// `assent config sign`
struct ConfigSignCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign", abstract: "Sign a draft as the next version of a trust file.",
        discussion: """
            The directory has the versions, each under its number: what a source serves as <source>/<number>. All of them are \
            verified, and the new one gets the next number. It refuses what would lock apps out: a host without a backup pin, \
            a pin that has ended, fewer than two keys, a key that the version before does not name, and members that are not \
            known.
            """)

    @Argument(help: "The draft, in YAML or JSON.", completion: .file(extensions: ["yaml", "yml", "json"]))
    var draft: String

    @Argument(help: "The directory with the versions.", completion: .directory)
    var versions: String

    @Option(
        name: .long, help: "The private key, as 'assent config key' has made it.",
        completion: .file(extensions: ["pem"]))
    var key: String

    @OptionGroup var result: ResultOptions

    func run() async throws {
        let console = result.console
        try await Outcome.run(console) {
            let now = Int(SystemClock().epochSeconds)
            let file = try await signed(at: now)
            try TrustDirectory(path: versions).write(file)
            let findings = TrustFinding.all(of: file.content, at: now)
            if console.json {
                console.emit(file.report(findings))
            } else {
                console.say("\(versions)/\(file.version) is version \(file.version) for \(file.audience).")
                for finding in findings { console.say("– \(finding.text)") }
            }
        }
    }

    /// The draft as the next version, which is not written yet.
    func signed(at now: Int) async throws -> TrustFile {
        let signer = try TrustKeyFile.read(key)
        let thumbprint = try ProtocolKey(signer).thumbprint
        let chain = try TrustDirectory(path: versions).chain()
        let before = chain?.newest
        if let before, before.content.issuedAt > now {
            throw CommandFailure(
                "Version \(before.version) was signed in the future by this machine's clock: set the clock.",
                status: .configuration)
        }
        let content = try TrustDraft(file: draft).content(version: (before?.version ?? 0) + 1, at: now)
        let problems = TrustFinding.all(of: content, at: now).filter(\.isProblem)
        guard problems.isEmpty else {
            throw CommandFailure(
                "It is not signed: " + problems.map(\.text).joined(separator: "; ") + ".", status: .configuration)
        }
        if let before, before.audience != content.audience {
            throw CommandFailure(
                "The versions there are for \(before.audience): use another directory for \(content.audience).",
                status: .configuration)
        }
        guard (before?.content ?? content).keys.contains(where: { $0.thumbprint == thumbprint }) else {
            let place = before.map { "version \($0.version)" } ?? "the draft"
            throw CommandFailure(
                "\(key) is the key \(thumbprint), which \(place) does not name, so no app would take what it signs.",
                status: .configuration)
        }
        guard var chain else { return try await TrustFile.sign(content, with: signer) }
        try await chain.sign(content, with: signer)
        return chain.newest
    }
}

extension TrustFile {
    /// What a script is told of a version.
    func report(_ findings: [TrustFinding]) -> JSONValue {
        [
            "version": .integer(version), "audience": .string(audience), "signer": .string(signer.text),
            "content": .object(content.members),
            "findings": .array(findings.map { ["fine": .bool(!$0.isProblem), "text": .string($0.text)] }),
        ]
    }
}
