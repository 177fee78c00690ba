import AssentConfiguration
import AssentCore
import AssentSigningProtocol
import AssentTrust
import Foundation

/// Asks the server what it tells this version of an app that has a trust file, and says what the app would make of it.
struct DeviceConfigurationExamination {
    let client: ClientFile
    let trust: TrustFile

    /// The pinned way to the server.
    let transport: any HTTPTransport

    let clock: any WallClock

    /// What the profile's vault has; `nil` where it has nothing or was not opened.
    var stored: DeviceConfigurationLook.Stored?

    /// As the SDK says it.
    private var version: String { client.registration?.softwareVersion ?? "0" }

    private var name: String { "the device configuration for version \(shown(version)) of \(trust.audience)" }

    /// The findings; nothing changes here or there.
    func findings() async -> [Diagnosis] {
        let app = ConfiguredApp(audience: trust.audience, version: version)
        let look = DeviceConfigurationLook(for: app, trust: trust, over: transport)
        switch await look.finding(knowing: stored, at: clock.now) {
        case .unreachable(let why):
            return [Diagnosis(.note, "\(name) could not be looked at. \(shown(why)) Ask again when the server serves")]
        case .untold: return [untold]
        case .refused(let error): return [refused(error)]
        case .told(let content): return told(content)
        }
    }

    private var untold: Diagnosis {
        let text =
            "there is no \(name.dropFirst("the ".count)): its realm at the server has no deviceConfig, or no such app. "
            + "Until it is told one, nobody registers, and calls are sealed where the trust file has keys for it"
        return Diagnosis(client.registration == nil ? .note : .problem, text)
    }

    private func refused(_ error: TrustFileError) -> Diagnosis {
        let remedy =
            switch error.code {
            case .unknownKey, .invalidSignature:
                "The trust file does not name its key in config: publish a version that does, or look whether this is "
                    + "the right server. The vault may have a later version already"
            case .wrongVersion:
                "Start all nodes with the same file, and look at their clocks: docs/device-configuration.md, Versions"
            default: "So the app takes nothing of it: ask the server's operator"
            }
        return Diagnosis(.problem, "\(name) is refused. \(shown(error.detail)) \(remedy)")
    }

    private func told(_ content: DeviceConfigurationContent) -> [Diagnosis] {
        let fine = Diagnosis(
            .fine,
            "\(name) is version \(content.version): \(content.status.rawValue), payloadEncryption "
                + content.payloadEncryption.rawValue)
        return [fine] + permissions(content) + sealing(content)
    }

    /// What the version may not do any more.
    private func permissions(_ content: DeviceConfigurationContent) -> [Diagnosis] {
        let decision = DeviceDecision(
            .init(implicit: true, stateless: true, seals: seals), version: version, trust: trust.content,
            configuration: content)
        switch decision.calls {
        case .outdated:
            let minimum = content.minimumVersion.map { ", and \($0.text) is the oldest" } ?? ""
            let text =
                "the server lets version \(shown(version)) call nothing any more (\(content.status.rawValue)\(minimum))"
            return [Diagnosis(.problem, "\(text): update the app, or correct registration.softwareVersion")]
        case .development:
            let text =
                "the trust file is one for development, and the server is in production, so that nothing is called"
            return [Diagnosis(.problem, "\(text): take the trust file that is published")]
        case .allowed, .unknown: break
        }
        guard decision.registers != .allowed, client.registration != nil else { return [] }
        return [
            Diagnosis(.note, "the server lets version \(shown(version)) register no more, only go on: update the app")
        ]
    }

    /// Whether the app's own file seals.
    private var seals: Bool { !client.payloadEncryption.isEmpty }

    /// What the server says of payload encryption, beside the trust file and the app's own.
    private func sealing(_ content: DeviceConfigurationContent) -> [Diagnosis] {
        let payload = trust.content.payload
        if content.payloadEncryption == .off {
            guard seals || payload?.mode == .always else { return [] }
            let who =
                seals ? "payloadEncryption of the client's file seals" : "payload.mode of the trust file is always"
            return [
                Diagnosis(
                    .problem,
                    "the server has payloadEncryption off for version \(shown(version)), and \(who), so that its sealed "
                        + "calls are refused: let the server's operator allow it, or do not demand it")
            ]
        }
        guard let payload else {
            guard !seals else { return [] }
            return [
                Diagnosis(
                    .note,
                    "the server has payloadEncryption on for version \(shown(version)), and the trust file has no payload "
                        + "keys, so that calls are not sealed, and are refused where the server requires it: publish a "
                        + "version with payload")
            ]
        }
        let now = trust.now(clock.now)
        guard !payload.keys.contains(where: { now < $0.notAfter }) else { return [] }
        return [
            Diagnosis(
                .problem,
                "calls to \(payload.origins.joined(separator: ", ")) are sealed, and all payload keys of the trust file "
                    + "have ended, so that none is sent: publish a version with new keys")
        ]
    }
}

/// A text from elsewhere as one line of a finding.
private func shown(_ text: String) -> String { DisplayText.escapedForTerminal(String(text.prefix(300))) }
