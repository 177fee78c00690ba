import AssentConfiguration
import AssentEngine
import AssentSigningProtocol

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
}
