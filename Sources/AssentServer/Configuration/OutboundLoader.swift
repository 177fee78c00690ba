import AssentConfiguration
import AssentCore

/// Reads the section `outbound`: whom the server may call.
struct OutboundLoader {
    let reader: SettingsReader<Void>
    let paths: ConfigurationPaths

    func settings() throws -> OutboundSettings {
        var settings = OutboundSettings()
        for name in reader.strings("privateHosts") {
            guard let host = try? NormalizedHost(name) else {
                throw reader.issue("privateHosts", "\(name) is not a host name or an address, without a port")
            }
            settings.privateHosts.insert(host)
        }
        if let file = reader.optionalString("authorities") { settings.authorities = .pemFile(paths.resolve(file)) }
        reader.finish()
        return settings
    }
}
