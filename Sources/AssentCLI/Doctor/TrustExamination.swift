import AssentConfiguration
import AssentCore
import AssentTrust

/// Looks at a client's trust file: what has ended or ends soon, and what has no backup.
struct TrustExamination {
    let file: String
    let clock: any WallClock

    /// The findings. The file's hosts and pins take the place of those in the client's file, so that they are what is
    /// compared with the certificates that are served.
    func apply(to client: inout ClientFile) -> [Diagnosis] {
        let trust: TrustFile
        do {
            trust = try TrustFile(shipped: TrustText.read(file))
        } catch {
            let reason = (error as? TrustFileError)?.detail ?? "\(error)"
            return [Diagnosis(.problem, "the trust file \(file) cannot be used. \(reason)")]
        }
        let now = trust.now(clock.now)
        client.pins = trust.content.hosts.compactMap { host in
            let live = host.livePins(at: now)
            return live.isEmpty ? nil : .init(host: host.host, pins: live, isSingle: live.count == 1)
        }
        client.resources = trust.content.hosts.compactMap(\.origin).map {
            ClientFile.Resource(origin: $0.description, credential: "nothing")
        }
        let intro = Diagnosis(
            .fine,
            "the trust file \(file) is version \(trust.version) for \(trust.audience); the vault may have a later one")
        return [intro]
            + TrustFinding.all(of: trust.content, at: now).map { Diagnosis($0.isProblem ? .problem : .note, $0.text) }
    }
}
