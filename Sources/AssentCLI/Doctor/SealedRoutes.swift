import AssentConfiguration
import AssentCore
import AssentEngine
import AssentServer
import AssentTrust

/// Compares the origins of a trust file with what a server and a gateway demand of calls.
struct SealedRoutes {
    let file: TrustFile

    /// The routes of a gateway that apps with this file do not call.
    func uncalled(_ gateway: GatewayConfiguration) -> [Diagnosis] {
        guard !gateway.routes.isEmpty, let origin = try? Origin(gateway.publicURL), file.host(of: origin) == nil else {
            return []
        }
        return [
            Diagnosis(
                .note,
                "the trust file does not name \(origin.authority), the gateway's host, so that no app calls its routes "
                    + "(\(list(gateway.routes.map(\.name)))): name it in hosts if one should")
        ]
    }

    /// What must come sealed, and comes plainly: the file names the host and has no payload keys for the origin.
    func plain(_ configuration: ServerConfiguration, of realm: RealmConfiguration?) -> [Diagnosis] {
        var findings: [Diagnosis] = []
        let app = TrustedApp(file.audience).app
        let versions = realm?.apps.first { $0.id == app }?.versions.sealed ?? []
        let gateway = configuration.gateway.flatMap { plain($0.publicURL) }
        // A gateway that gets no credential does not know whose version calls.
        let knowing = gateway.flatMap { file.kinds(of: $0)?.isEmpty == false ? $0 : nil }
        for origin in [plain(configuration.publicURL), knowing].compactMap(\.self) where !versions.isEmpty {
            findings.append(
                Diagnosis(
                    .problem,
                    "payloadEncryption is required for the versions \(list(versions)) of the app \(app), and the trust "
                        + "file has no payload keys for \(origin), so that their calls there are refused: publish a "
                        + "version with \(origin) in payload.origins"))
        }
        let routes = configuration.gateway?.routes.filter(\.requiresSealing).map(\.name) ?? []
        if let gateway, !routes.isEmpty {
            findings.append(
                Diagnosis(
                    .problem,
                    "payloadEncryption is required for the routes \(list(routes)), and the trust file has no payload "
                        + "keys for \(gateway), so that apps' calls there are refused: publish a version with "
                        + "\(gateway) in payload.origins"))
        }
        return findings
    }

    /// What apps always seal, and the server takes from some of their versions only plainly.
    func unsealed(_ configuration: ServerConfiguration, of realm: RealmConfiguration?) -> [Diagnosis] {
        let app = TrustedApp(file.audience).app
        guard file.content.payload?.mode == .always, let own = realm?.apps.first(where: { $0.id == app }) else {
            return []
        }
        let origins = [configuration.publicURL, configuration.gateway?.publicURL].compactMap(\.self).filter(isSealed)
        // A handshake knows no realm, so a version is off where all realms with an app of that name say so.
        let apps = configuration.realms.flatMap(\.apps).filter { $0.id == app }
        let versions = own.versions.unsealed.filter { name in
            apps.allSatisfy { $0.versions.sealing(of: name == "default" ? nil : name) == .off }
        }
        guard !origins.isEmpty, !versions.isEmpty else { return [] }
        let addresses = list(origins.compactMap { (try? Origin($0))?.description })
        return [
            Diagnosis(
                .problem,
                "payloadEncryption is off for the versions \(list(versions)) of the app \(app), and payload.mode of "
                    + "the trust file is always, so that none of their calls reaches \(addresses): allow it in the "
                    + "server's file, or publish a version of the trust file with the mode server")
        ]
    }

    /// Whether the file has payload keys for the origin of an address.
    func isSealed(_ address: String) -> Bool {
        guard let origin = try? Origin(address), let payload = file.content.payload else { return false }
        return payload.origins.contains(origin.description)
    }

    /// The origin of an address that apps call, and do not seal.
    private func plain(_ address: String) -> Origin? {
        guard let origin = try? Origin(address), file.host(of: origin) != nil, !isSealed(address) else { return nil }
        return origin
    }

    /// Some names, and how many more there are.
    private func list(_ names: [String]) -> String {
        let shown = names.prefix(4).joined(separator: ", ")
        return names.count > 4 ? "\(shown) and \(names.count - 4) more" : shown
    }
}
