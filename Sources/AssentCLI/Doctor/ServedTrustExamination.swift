import AssentConfiguration
import AssentCore
import AssentServer
import AssentTrust

/// Looks at the trust files that a server serves (`trustFiles` of its file), as an app will: each chain from its lowest
/// version on, what has ended or ends soon in the newest one, and how that one fits the server and its database.
struct ServedTrustExamination {
    /// The server's file.
    let file: String
    let clock: any WallClock

    /// The findings; none about a file that cannot be read: others say why.
    func findings() async -> [Diagnosis] {
        guard let configuration = try? ServerConfiguration.load(file: file) else { return [] }
        var findings: [Diagnosis] = []
        for (name, path) in configuration.trustFiles.sorted(by: { $0.key < $1.key }) {
            findings += await self.findings(name, path, of: configuration)
        }
        return findings
    }

    private func findings(_ name: String, _ path: String, of configuration: ServerConfiguration) async -> [Diagnosis] {
        let chain: TrustChain
        do {
            guard let found = try TrustDirectory(path: path).chain() else {
                return [Diagnosis(.note, "the trust file \(name) has no version in \(path) yet")]
            }
            chain = found
        } catch {
            let why = (error as? any AssentError)?.explanation ?? "\(error)"
            return [Diagnosis(.problem, "the trust file \(name), from that version on, is taken by no app. \(why)")]
        }
        let newest = chain.newest
        var findings = [
            Diagnosis(
                .fine,
                "the trust file \(name) is served up to version \(newest.version) for \(newest.audience)")
        ]
        let source = "\(configuration.publicURL)/trust/\(name)"
        if !newest.content.source.contains(source) {
            findings.append(
                Diagnosis(.note, "the newest version of the trust file \(name) does not have the source \(source)"))
        }
        let now = newest.now(clock.now)
        findings += TrustFinding.all(of: newest.content, at: now).map {
            Diagnosis($0.isProblem ? .problem : .note, "the trust file \(name): \($0.text)")
        }
        let compared = await ServerTrustComparison(file: newest, configuration: configuration, clock: clock).findings()
        return findings + compared.map { Diagnosis($0.verdict, "the trust file \(name): \($0.text)") }
    }
}
