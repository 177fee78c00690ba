import ArgumentParser
import AssentCore
import AssentSigningProtocol
import AssentTokens
import AssentTrust
import Foundation

/// `assent config check`
struct ConfigCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Verify a chain of trust files, and say what it has and what ends.",
        discussion: """
            Of a directory it verifies every version with the keys of the one before, and then shows the newest. The lowest \
            version is taken as it is: compare it with the one that the app is shipped with, or name that with --from. Of a \
            single file it shows what is in it.

            Exit status: 0 nothing is wrong, 78 something is.
            """)

    @Argument(help: "The directory with the versions, or one file.", completion: .file())
    var versions: String

    @Option(
        name: .long, help: "The file that the app is shipped with: the chain must lead from it.", completion: .file())
    var from: String?

    @OptionGroup var result: ResultOptions

    func run() async throws {
        let console = result.console
        try await Outcome.run(console) {
            let file = try newest()
            let findings = TrustFinding.all(of: file.content, at: Int(SystemClock().epochSeconds))
            if console.json { console.emit(file.report(findings)) } else { show(file, findings, console) }
            try console.finish()
            if findings.contains(where: \.isProblem) { throw ExitCode(Outcome.Status.configuration.rawValue) }
        }
    }

    private func newest() throws -> TrustFile {
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: versions, isDirectory: &isDirectory), isDirectory.boolValue else {
            guard from == nil else { throw ValidationError("--from belongs to a directory.") }
            return try TrustFile(shipped: TrustText.read(versions))
        }
        guard let chain = try TrustDirectory(path: versions).chain() else {
            throw CommandFailure("\(versions) has no version yet.", status: .configuration)
        }
        if let from {
            let shipped = try TrustFile(shipped: TrustText.read(from))
            guard chain.files.contains(shipped) else {
                throw CommandFailure(
                    "\(versions) does not have the file \(from), version \(shipped.version), so no app that is shipped "
                        + "with it takes these versions.", status: .configuration)
            }
        }
        return chain.newest
    }

    private func show(_ file: TrustFile, _ findings: [TrustFinding], _ console: Console) {
        let content = file.content
        console.say("version \(file.version) for \(file.audience), signed by \(file.signer)")
        console.say("  next version: any of \(content.keys.map(\.thumbprint.text).joined(separator: ", "))")
        console.say("  issuer: \(content.issuer)")
        for host in content.hosts {
            let kinds =
                host.sends.isEmpty
                ? "no credential" : "the credential of " + host.sends.map(\.rawValue).joined(separator: ", ")
            console.say("  \(host.host) gets \(kinds)")
            for pin in host.pins { console.say("    \(pin.pin) until \(Self.text(pin.notAfter))") }
        }
        for source in content.source { console.say("  source: \(source)/\(file.version + 1)") }
        if let expires = content.expires { console.say("  ends: \(Self.text(expires))") }
        for finding in findings {
            console.say("\(finding.isProblem ? console.styled("✗", .red) : "–") \(finding.text)")
        }
        if findings.isEmpty { console.say("\(console.styled("✓", .green)) nothing ends within 30 days") }
    }

    private static func text(_ time: Int) -> String {
        Date(timeIntervalSince1970: TimeInterval(time)).formatted(.iso8601)
    }
}
