import Assent
import AssentConfiguration
import AssentCore
import AssentTransportNIO
import AssentTrust
import AssentVault
import Foundation

/// Looks at what a client relies on: its file, the CA, the pins beside the certificates that each server shows; and
/// when the pins hold, what the server says of the file, and tells an app that has a trust file.
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

    /// A least time for each connection and each question.
    var leastLimit = LeastLimit.ofCalls()

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
        var trusted: TrustFile?
        if let path = trust ?? client.trust {
            let examination = TrustExamination(file: path, clock: clock)
            findings += examination.apply(to: &client)
            trusted = examination.read().trust
        }
        let (authority, authorities) = authority(of: client)
        findings += authority
        for origin in origins(of: client) {
            guard let origin = try? Origin(origin), origin.isSecure else {
                findings.append(Diagnosis(.problem, "\(origin) is not an https:// URL"))
                continue
            }
            findings += await PinExamination(
                client: client, origin: origin, authorities: authorities, clock: clock, leastLimit: leastLimit
            ).findings()
        }
        guard asksServer, !findings.contains(where: { $0.verdict == .problem }) else { return findings }
        return findings + (await told(to: client, trusted))
    }

    /// What the server says to questions that anybody may ask, over the pinned way.
    private func told(to client: ClientFile, _ trusted: TrustFile?) async -> [Diagnosis] {
        do {
            let configuration = client.configuration(vault: .memory)
            var settings = NIOTransportConfiguration(trustRoots: configuration.trustRoots, pins: configuration.pins)
            settings.maximumConnectionsPerOrigin = 1
            settings.leastLimit = leastLimit
            let transport = try NIOTransport(configuration: settings, clock: clock)
            var findings = await RegistrationExamination(client: client, transport: transport).findings()
            if let trusted {
                let (stored, unread) = await self.stored(for: trusted.audience)
                findings += unread
                findings += await DeviceConfigurationExamination(
                    client: client, trust: trusted, transport: transport, clock: clock, stored: stored
                ).findings()
            }
            await transport.shutdown()
            return findings
        } catch {
            return [Diagnosis(.problem, "\(client.place) cannot be asked. \(error.explanation)")]
        }
    }

    /// What the profile's vault has of a device configuration, where nobody need be asked for a passphrase or PIN.
    private func stored(for audience: String) async -> (DeviceConfigurationLook.Stored?, [Diagnosis]) {
        func unread(_ why: String) -> (DeviceConfigurationLook.Stored?, [Diagnosis]) {
            let text = "the device configuration was not compared with the last one that the vault has: \(why)"
            return (nil, [Diagnosis(.note, text)])
        }
        do {
            let place = try VaultPlace(profile: profile, places: places)
            // What is wrong with a vault is said where the vault is looked at.
            guard let info = try FileVault.inspect(place.directory), place.keyProvider.matches(info.claimed) else {
                return (nil, [])
            }
            guard !place.keyProvider.asksForSecret else {
                return unread("it is guarded by \(place.keyProvider.name), which doctor does not ask for its secret")
            }
            let vault = try await place.open(TerminalPresence(known: nil))
            return (try await DeviceConfigurationLook.stored(for: audience, in: vault), [])
        } catch {
            return unread(error.explanation)
        }
    }

    /// Whether the profile, which the other commands use, says something else than the file that was named.
    private func drift(from client: ClientFile) -> [Diagnosis] {
        let path = places.configurationFile(profile: profile)
        guard var kept = try? ClientFile.load(path) else { return [] }
        // The server's own note: the commands do not go by it.
        kept.lastGateway = client.lastGateway
        guard kept != client else { return [] }
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
