import AssentConfiguration
import AssentCore
import AssentEngine
import AssentJOSE
import AssentSigningProtocol
import SwiftASN1

/// Reads `deviceConfig` of a realm: how installations of its apps are told what they may do.
struct DeviceConfigurationLoader {
    let reader: SettingsReader<Void>
    let paths: ConfigurationPaths

    /// The settings of a realm with these apps.
    func settings(for apps: [OAuthApp], of realm: String) throws -> DeviceConfigurationSettings {
        let environment = reader.string("environment", default: "production")
        let key = try key(reader.string("keyFile"))
        reader.finish()
        guard AudiencePart.isValid(environment) else {
            throw reader.issue("environment", "has 1 to 64 letters, digits and . _ -")
        }
        guard !apps.isEmpty else { throw reader.issue(nil, "is for apps, and \(realm) has none") }
        for app in apps where app.webLinks.reduce(0, { $0 + $1.utf8.count }) > Self.linkLimit {
            throw reader.issue(
                nil, "the webLinks of the app \(app.id) have more than \(Self.linkLimit) bytes, which no device reads")
        }
        return DeviceConfigurationSettings(key: key, environment: environment)
    }

    /// Why what one realm tells an app passes for what another one tells it; `nil` when nothing does. A document names
    /// app, platform and environment, and not the realm.
    static func confusion(among realms: [RealmConfiguration]) -> String? {
        var tellers: [String: String] = [:]
        for realm in realms {
            guard let settings = realm.deviceConfiguration, let key = try? ProtocolKey(settings.key) else { continue }
            for app in realm.apps {
                let told = "\(key.thumbprint.text)/\(app.id)/\(settings.environment)"
                guard let other = tellers.updateValue(realm.name, forKey: told) else { continue }
                return "\(other) and \(realm.name) have the app \(app.id) and the same key and environment in "
                    + "deviceConfig, so that either could tell it what the other one does not allow: give each its own "
                    + "key, as 'assent config key device' makes it"
            }
        }
        return nil
    }

    /// How many bytes the links of an app may have, so that a signed document is not too long.
    private static let linkLimit = 32 << 10

    private func key(_ file: String) throws -> SoftwareSigningKey {
        guard !file.isEmpty else { throw reader.issue("keyFile", "names the key, which 'assent config key' makes") }
        let bytes = try PrivateFile.read(paths.resolve(file), limit: 4096, isNamed: true)
        guard let document = try? PEMDocument(pemString: String(decoding: bytes, as: UTF8.self)),
            document.discriminator == "PRIVATE KEY",
            let key = try? SoftwareSigningKey(algorithm: .es256, privateKey: Secret(bytes: document.derBytes))
        else { throw reader.issue("keyFile", "is not a private key on P-256 in PEM (PKCS#8)") }
        return key
    }
}
