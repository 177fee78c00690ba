import AssentConfiguration
import AssentCore
import AssentEngine
import AssentServer
import AssentSigningProtocol
import AssentTrust

/// What there is to say of a trust file beside a server's file and its database: whether apps that have it call the
/// server, seal what must come sealed, with keys that the server has, and believe what it tells them.
struct ServerTrustComparison {
    let file: TrustFile
    let configuration: ServerConfiguration
    let clock: any WallClock

    /// The findings; empty where they fit.
    func findings() async -> [Diagnosis] {
        let (named, told) = realm()
        let routes = SealedRoutes(file: file)
        var findings = told
        if let gateway = configuration.gateway { findings += routes.uncalled(gateway) }
        findings += routes.plain(configuration, of: named)
        findings += routes.unsealed(configuration, of: named)
        return findings + (await keys())
    }

    /// The realm whose issuer the file names, and what there is to say of it. Apps with this file sign in nowhere else.
    private func realm() -> (realm: RealmConfiguration?, findings: [Diagnosis]) {
        let issuers = configuration.issuers(at: configuration.publicURL)
        guard let name = issuers.first(where: { $0.issuer == file.content.issuer })?.realm,
            let realm = configuration.realms.first(where: { $0.name == name })
        else {
            let text =
                "the issuer of the trust file, \(file.content.issuer), is not one of this server's, so its realms "
                + "were not compared with the file"
            return (nil, [Diagnosis(.note, text)])
        }
        var findings = deviceConfiguration(of: realm)
        if let origin = try? Origin(configuration.publicURL), file.host(of: origin) == nil {
            findings.append(
                Diagnosis(
                    .problem,
                    "the trust file does not name \(origin.authority), the host of its issuer, so apps never call "
                        + "this server: publish a version that names it in hosts"))
        }
        return (realm, findings)
    }

    /// Whether apps take what the realm tells them.
    private func deviceConfiguration(of realm: RealmConfiguration) -> [Diagnosis] {
        guard let settings = realm.deviceConfiguration, let key = try? ProtocolKey(settings.key) else { return [] }
        var findings: [Diagnosis] = []
        if !file.content.config.contains(where: { $0.thumbprint == key.thumbprint }) {
            findings.append(
                Diagnosis(
                    .problem,
                    "the trust file does not name the key \(key.thumbprint.text) in config, so that apps believe "
                        + "nothing that \(realm.name) tells them (deviceConfig): publish a version that names it"))
        }
        let audience = TrustedApp(file.audience)
        if audience.environment != settings.environment {
            findings.append(
                Diagnosis(
                    .problem,
                    "the trust file is for \(file.audience), and deviceConfig.environment of \(realm.name) is "
                        + "\(settings.environment), so that apps believe nothing that they are told: correct one of "
                        + "them"))
        }
        if !realm.apps.contains(where: { $0.id == audience.app }) {
            findings.append(
                Diagnosis(
                    .note,
                    "the trust file is for \(file.audience), and \(realm.name) has no app \(audience.app), so that "
                        + "nobody is told anything there"))
        }
        return findings
    }

    /// The file's payload keys beside those of the database, where the server is one of the file's origins.
    private func keys() async -> [Diagnosis] {
        guard let payload = file.content.payload else { return [] }
        let origins = [configuration.publicURL, configuration.gateway?.publicURL].compactMap(\.self)
        guard origins.contains(where: { SealedRoutes(file: file).isSealed($0) }) else {
            let text =
                "payload.origins of the trust file has no address of this server, so its payload keys were not compared"
            return [Diagnosis(.note, text)]
        }
        guard let listed = await ServerExamination.payloadKeys(configuration, clock: clock) else {
            return [Diagnosis(.note, "the payload keys of the trust file were not compared: the database was not read")]
        }
        let now = clock.epochSeconds
        return payload.keys.filter { file.now(clock.now) < $0.notAfter }.compactMap { key in
            TrustedKeyComparison(key: key, listed: listed, now: now).finding
        }
    }
}

/// The parts of a trust file's `aud`.
struct TrustedApp {
    let app: String
    let environment: String

    /// Of `app/platform/environment`, which the format makes sure of.
    init(_ audience: String) {
        let parts = audience.split(separator: "/").map(String.init)
        (app, environment) = (parts.first ?? "", parts.last ?? "")
    }
}
