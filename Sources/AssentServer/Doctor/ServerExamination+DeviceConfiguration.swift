import AssentConfiguration
import AssentEngine
import AssentSigningProtocol
import AssentStore

/// What trust files must name so that apps believe what the server tells them.
extension ServerExamination {
    static func deviceConfigurations(_ configuration: ServerConfiguration) -> [Diagnosis] {
        configuration.realms.compactMap { realm in
            guard let settings = realm.deviceConfiguration, let key = try? ProtocolKey(settings.key) else { return nil }
            return Diagnosis(
                .fine,
                "installations of \(realm.name) are told what they may do, for \(settings.environment), by the key "
                    + "\(key.thumbprint.text): trust files name it in config")
        }
    }

    /// Versions that no app takes, and those that say something else than the file: an older one is told until the
    /// nodes are started again.
    static func served(_ rows: [SQLRow], _ configuration: ServerConfiguration, now: Int64) -> [Diagnosis] {
        rows.compactMap { try? ServedDeviceConfiguration($0) }.flatMap { served -> [Diagnosis] in
            guard let realm = configuration.realms.first(where: { $0.name == served.realm }),
                let settings = realm.deviceConfiguration, let app = realm.apps.first(where: { $0.id == served.app })
            else { return [] }
            let name = "the device configuration of the app \(app.id) of \(realm.name) is version \(served.version)"
            var findings: [Diagnosis] = []
            if served.version > now + ServedDeviceConfiguration.lead {
                findings.append(
                    Diagnosis(
                        .problem,
                        "\(name), which is more than a day ahead of the clock, so that no app takes it: put the clock "
                            + "right, delete the app's row in device_configs, and start the nodes again"))
            }
            if served.digest != DeviceConfigurations.digest(of: app, settings, pin: realm.signing?.loginRules) {
                findings.append(
                    Diagnosis(
                        .note,
                        "\(name), and says something else than this file: start the nodes again with this file, "
                            + "so that apps are told what it says"))
            }
            return findings
        }
    }
}
