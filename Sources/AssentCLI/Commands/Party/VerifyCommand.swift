import ArgumentParser
import Assent
import AssentJOSE
import AssentSigningProtocol
import Foundation

/// `assent verify`
struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Judge a bundle of evidence about a signed transaction, without any server.",
        discussion: """
            It prints what is established by cryptography, what only the server attests, what is not established, and what \
            is contradicted. A bundle cannot vouch for its own root: say with --trust which identity key you trust, and \
            get that key in another way.

            Example:  assent verify bundle.json --trust identity.json

            Exit status: 0 trusted root and nothing contradicted, 2 contradicted or another root, 1 the file cannot be \
            read, 64 no --trust.
            """)

    @Argument(help: "The bundle, a JSON file.", completion: .file(extensions: ["json"]))
    var bundle: String

    // A thumbprint may begin with a hyphen.
    @Option(
        name: .long, parsing: .unconditional, help: "The identity key's thumbprint, or a file with the key as a JWK.",
        completion: .file())
    var trust: String?

    @Flag(name: .long, help: "Print the report as JSON.")
    var json = false

    func run() async throws {
        let console = Console(json: json)
        try await Outcome.run(console) {
            let report = EvidenceVerification.report(on: try read(), trust: try root())
            if json { console.emit(report.json) } else { Self.show(report, console) }
            try console.finish()
            if report.exitStatus != 0 { throw ExitCode(report.exitStatus) }
        }
    }

    private func read() throws -> EvidenceBundle {
        let bytes = try Self.content(of: bundle, "Name the file with the bundle.")
        do {
            return try EvidenceBundle(reading: bytes)
        } catch {
            throw CommandFailure("\(bundle) is not a bundle of evidence. \(error.detail)")
        }
    }

    private func root() throws -> KeyThumbprint? {
        guard let trust else { return nil }
        if let thumbprint = KeyThumbprint(text: trust) { return thumbprint }
        let bytes = try Self.content(of: trust, "Name the thumbprint of the identity key, or a file with its JWK.")
        guard let key = try? JWK(JSONValue.parse(bytes)), let thumbprint = KeyThumbprint(text: key.thumbprint) else {
            throw CommandFailure("\(trust) is not the JWK of an identity key.")
        }
        return thumbprint
    }

    private static func content(of path: String, _ advice: String) throws -> [UInt8] {
        do {
            let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            defer { try? file.close() }
            // One byte more than the most, so that a longer file is refused and not cut.
            return [UInt8](try file.read(upToCount: EvidenceBundle.limit + 1) ?? Data())
        } catch {
            throw CommandFailure.unreadable(path, error, advice)
        }
    }

    private static func show(_ report: EvidenceReport, _ console: Console) {
        for (title, style, lines) in report.lists {
            console.say(console.styled(title, style))
            for line in lines { console.say("  - " + DisplayText.escapedForTerminal(line)) }
            if lines.isEmpty { console.say("  - nothing") }
        }
        if !report.hasTrustAnchor {
            console.warn("Nobody said which identity key is trusted: name it with --trust.")
        } else if report.root == nil {
            console.warn("The trusted identity key is not in the bundle.")
        }
    }
}

extension EvidenceReport {
    /// The four lists, each with what it is and how it is shown.
    fileprivate var lists: [(title: String, style: Console.Style, lines: [String])] {
        [
            ("Established by cryptography:", .green, established.map(\.sentence)),
            ("Attested only by the server \(root?.text ?? ""):", .bold, attested.map(\.sentence)),
            ("Not established:", .bold, notEstablished.map(\.sentence)),
            ("Contradicted:", contradicted.isEmpty ? .green : .red, contradicted.map(\.sentence)),
        ]
    }

    fileprivate var json: JSONValue {
        func list(_ lines: [String]) -> JSONValue { .array(lines.map(JSONValue.string)) }
        return [
            "root": root.map { .string($0.text) } ?? .null, "established": list(established.map(\.sentence)),
            "attested": list(attested.map(\.sentence)), "notEstablished": list(notEstablished.map(\.sentence)),
            "contradicted": list(contradicted.map(\.sentence)),
        ]
    }
}
