import Assent
import AssentConfiguration
import AssentCore
import AssentTransportNIO
import Foundation

/// Looks at what a client relies on: its file, the CA, the pins beside the certificates that each server shows; and
/// when the pins hold, what the server says of the file.
struct ClientExamination {
    let profile: String

    /// The file to look at; `nil` for the one that the profile keeps.
    let file: String?

    /// The trust file, where it is not the one that the client's file names.
    var trust: String?

    var places = Places()
    var clock: any WallClock = SystemClock()

    /// Whether a server whose pins hold is asked anything.
    var asksServer = true

    func findings() async -> [Diagnosis] {
        let path = file ?? places.configurationFile(profile: profile)
        var client: ClientFile
        do {
            client = try ClientFile.load(path)
        } catch {
            guard file == nil, !FileManager.default.fileExists(atPath: path) else {
                return [Diagnosis(.problem, "\(error)")]
            }
            return [
                Diagnosis(
                    .problem,
                    "profile \(profile) has no configuration yet: 'assent login --config …/client.yaml' keeps one as \(path). "
                        + "To look at another file: assent doctor --config …")
            ]
        }
        var findings = [Diagnosis(.fine, "\(path) can be read")]
        if file != nil { findings += drift(from: client) }
        if let path = trust ?? client.trust {
            let trusted = TrustExamination(file: path, clock: clock)
            findings += trusted.apply(to: &client)
        }
        let (authority, authorities) = authority(of: client)
        findings += authority
        for origin in origins(of: client) {
            guard let origin = try? Origin(origin), origin.isSecure else {
                findings.append(Diagnosis(.problem, "\(origin) is not an https:// URL"))
                continue
            }
            findings += await PinExamination(client: client, origin: origin, authorities: authorities, clock: clock)
                .findings()
        }
        guard asksServer, !findings.contains(where: { $0.verdict == .problem }) else { return findings }
        return findings + (await registration(of: client))
    }

    private func registration(of client: ClientFile) async -> [Diagnosis] {
        do {
            let configuration = client.configuration(vault: .memory)
            var settings = NIOTransportConfiguration(trustRoots: configuration.trustRoots, pins: configuration.pins)
            settings.maximumConnectionsPerOrigin = 1
            let transport = try NIOTransport(configuration: settings, clock: clock)
            let findings = await RegistrationExamination(client: client, transport: transport).findings()
            await transport.shutdown()
            return findings
        } catch {
            return [Diagnosis(.problem, "\(client.place) cannot be asked. \(error.explanation)")]
        }
    }

    /// Whether the profile, which the other commands use, says something else than the file that was named.
    private func drift(from client: ClientFile) -> [Diagnosis] {
        let path = places.configurationFile(profile: profile)
        guard let kept = try? ClientFile.load(path), kept != client else { return [] }
        return [
            Diagnosis(
                .note,
                "the other commands use \(path), which says something else than this file; "
                    + "'assent login --config' with this file replaces it")
        ]
    }

    private func authority(of client: ClientFile) -> ([Diagnosis], [CertificateKey]) {
        guard let path = client.authority else { return ([], []) }
        guard FileManager.default.isReadableFile(atPath: path) else {
            return ([Diagnosis(.problem, "the CA's file \(path) is missing: has the server made a new one?")], [])
        }
        do {
            return ([Diagnosis(.fine, "the CA's file \(path) is there")], try CertificateKey.read(pemFile: path))
        } catch {
            let text = "the CA's file \(path): \(error.detail) Get it from the server again"
            return ([Diagnosis(.problem, text)], [])
        }
    }

    /// The server first, each of the others once.
    private func origins(of client: ClientFile) -> [String] {
        var seen: Set<Origin> = []
        return ([client.server] + client.resources.map(\.origin)).filter {
            guard let origin = try? Origin($0) else { return true }
            return seen.insert(origin).inserted
        }
    }
}
