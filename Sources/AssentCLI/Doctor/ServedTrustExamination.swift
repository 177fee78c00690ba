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

    /// What was found of one of them.
    private struct Served {
        let name: String
        /// All versions; empty where they cannot be used.
        var versions: [TrustFile] = []
        /// What there is to say of the directory.
        var findings: [Diagnosis] = []
        /// What there is to say of the newest version, in the words that are said of a file by itself.
        var ofNewest: [Diagnosis] = []

        var all: [Diagnosis] {
            findings + ofNewest.map { Diagnosis($0.verdict, "the trust file \(name): \($0.text)") }
        }
    }

    /// The findings; none about a file that cannot be read: others say why.
    ///
    /// - Parameter trust: another trust file to look at. What is found of it and of the newest version of those that
    ///   are served, where it is one of them, is told once.
    /// - Returns: the findings.
    func findings(beside trust: String? = nil) async -> [Diagnosis] {
        let served = await self.served()
        let findings = served.flatMap(\.all)
        guard let trust else { return findings }
        let named = await ServerTrustExamination(trust: trust, config: file, clock: clock).findings()
        guard let own = TrustExamination(file: trust, clock: clock).read().trust,
            let same = served.first(where: { $0.versions.contains(own) })
        else { return findings + named }
        let known = Set(same.ofNewest)
        return findings + named.filter { !known.contains($0) } + [
            Diagnosis(
                .fine,
                "\(trust) is version \(own.version) of the trust file \(same.name), which is served: what was found of "
                    + "both is told once, of the newest version")
        ]
    }

    private func served() async -> [Served] {
        guard let configuration = try? ServerConfiguration.load(file: file) else { return [] }
        var served: [Served] = []
        for (name, path) in configuration.trustFiles.sorted(by: { $0.key < $1.key }) {
            served.append(await self.served(name, path, of: configuration))
        }
        return served
    }

    private func served(_ name: String, _ path: String, of configuration: ServerConfiguration) async -> Served {
        var served = Served(name: name)
        let chain: TrustChain
        do {
            guard let found = try TrustDirectory(path: path).chain() else {
                served.findings = [Diagnosis(.note, "the trust file \(name) has no version in \(path) yet")]
                return served
            }
            chain = found
        } catch {
            let text = "the trust file \(name), from that version on, is taken by no app. \(error.explanation)"
            served.findings = [Diagnosis(.problem, text)]
            return served
        }
        let newest = chain.newest
        served.versions = chain.files
        served.findings = [
            Diagnosis(
                .fine,
                "the trust file \(name) is served up to version \(newest.version) for \(newest.audience)")
        ]
        let source = "\(configuration.publicURL)/trust/\(name)"
        if !newest.content.source.contains(source) {
            served.findings.append(
                Diagnosis(.note, "the newest version of the trust file \(name) does not have the source \(source)"))
        }
        served.ofNewest = TrustFinding.all(of: newest.content, at: newest.now(clock.now)).map {
            Diagnosis($0.isProblem ? .problem : .note, $0.text)
        }
        served.ofNewest += await ServerTrustComparison(
            file: newest, configuration: configuration, clock: clock
        ).findings()
        return served
    }
}
