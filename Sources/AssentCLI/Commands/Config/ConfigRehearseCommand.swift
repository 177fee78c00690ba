import ArgumentParser
import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentTrust

/// `assent config rehearse`
struct ConfigRehearseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rehearse", abstract: "Act out the loss of each key of a trust file, and say what remains.",
        discussion: """
            For each key that may sign the next version it signs, on a copy in memory, a version without that key, and verifies \
            it as an app would. For each pin it says whether the host can still be called without it. Nothing is written.

            Exit status: 0 every loss can be made good without a release of the app, 78 one cannot.
            """)

    @Argument(help: "The directory with the versions.", completion: .directory)
    var versions: String

    @Option(
        name: .long, help: "A private key that you still have; once for each.", completion: .file(extensions: ["pem"]))
    var key: [String] = []

    @OptionGroup var result: ResultOptions

    private struct Loss {
        let what: String
        let remains: String?
    }

    func run() async throws {
        let console = result.console
        try await Outcome.run(console) {
            guard let chain = try TrustDirectory(path: versions).chain() else {
                throw CommandFailure("\(versions) has no version yet.", status: .configuration)
            }
            let now = Int(SystemClock().epochSeconds)
            let losses = try await signers(chain) + pins(chain.newest, now)
            for loss in losses where !console.json {
                let mark = loss.remains == nil ? console.styled("✗", .red) : console.styled("✓", .green)
                console.say("\(mark) \(loss.what): \(loss.remains ?? "only a release of the app helps")")
            }
            if console.json {
                console.emit(
                    .array(
                        losses.map { ["lost": .string($0.what), "remains": $0.remains.map(JSONValue.string) ?? .null] })
                )
            }
            try console.finish()
            if losses.contains(where: { $0.remains == nil }) {
                throw ExitCode(Outcome.Status.configuration.rawValue)
            }
        }
    }

    private func signers(_ chain: TrustChain) async throws -> [Loss] {
        let keys = try key.map(TrustKeyFile.read)
        let fresh = try ProtocolKey(SoftwareSigningKey.generate(.es256))
        var losses: [Loss] = []
        for lost in chain.newest.content.keys {
            let left = try keys.filter { try ProtocolKey($0) != lost }
            let next = try await chain.recovered(from: lost.thumbprint, with: fresh, signingWith: left)
            losses.append(
                Loss(
                    what: "the key \(lost.thumbprint) is lost",
                    remains: next.map { "\($0.signer) signs version \($0.version), and apps take it" }))
        }
        return losses
    }

    private func pins(_ file: TrustFile, _ now: Int) -> [Loss] {
        file.content.hosts.flatMap { host in
            host.livePins(at: now).map { lost in
                let left = host.livePins(at: now).filter { $0 != lost }
                return Loss(
                    what: "\(host.host) loses the key of \(lost)",
                    remains: left.isEmpty
                        ? nil : "apps call it with \(left.map(\.description).joined(separator: " or "))")
            }
        }
    }
}
