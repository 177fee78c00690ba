import AssentConfiguration
import AssentCore
import AssentTrust

/// Looks at a client's trust file: what has ended or ends soon, and what has no backup.
struct TrustExamination {
    let file: String
    let clock: any WallClock

    /// The trust file, with what there is to say of it alone; `nil` with the reason where it cannot be used.
    func read() -> (trust: TrustFile?, findings: [Diagnosis]) {
        let trust: TrustFile
        do {
            trust = try TrustFile(shipped: TrustText.read(file))
        } catch {
            let reason = (error as? TrustFileError)?.detail ?? "\(error)"
            return (nil, [Diagnosis(.problem, "the trust file \(file) cannot be used. \(reason)")])
        }
        let intro = Diagnosis(
            .fine,
            "the trust file \(file) is version \(trust.version) for \(trust.audience); the vault may have a later one")
        let found = TrustFinding.all(of: trust.content, at: trust.now(clock.now))
        return (trust, [intro] + found.map { Diagnosis($0.isProblem ? .problem : .note, $0.text) })
    }

    /// The findings. The file's hosts and pins take the place of those in the client's file, so that they are what is
    /// compared with the certificates that are served.
    func apply(to client: inout ClientFile) -> [Diagnosis] {
        let (trust, findings) = read()
        guard let trust else { return findings }
        let now = trust.now(clock.now)
        client.pins = trust.content.hosts.compactMap { host in
            let live = host.livePins(at: now)
            return live.isEmpty ? nil : .init(host: host.host, pins: live, isSingle: live.count == 1)
        }
        client.resources = trust.content.hosts.compactMap(\.origin).map {
            ClientFile.Resource(origin: $0.description, credential: "nothing")
        }
        return findings + unnamed(client.resourceBase, in: trust)
    }

    /// Where the client's paths lead, if the file does not name that host.
    private func unnamed(_ base: String?, in trust: TrustFile) -> [Diagnosis] {
        guard let origin = base.flatMap({ try? Origin($0) }), trust.host(of: origin) == nil else { return [] }
        return [
            Diagnosis(
                .problem,
                "the trust file \(file) does not name \(origin.authority), where resources.base leads, so nothing is "
                    + "called there: name it in hosts, or correct resources.base")
        ]
    }
}
