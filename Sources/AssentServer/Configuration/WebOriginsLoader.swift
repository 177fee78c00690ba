import AssentConfiguration
import AssentCore

extension WebOrigins {
    /// The key `allowedOrigins` of a realm, a client or a route, as browsers write origins.
    static func read(_ reader: SettingsReader<Void>) throws -> [String] {
        let key = "allowedOrigins"
        return try reader.strings(key).map { text in
            guard let origin = try? Origin(headerValue: text) else {
                throw reader.issue(
                    key, "\(text) is not an origin: scheme, host and port alone, for example https://shop.example")
            }
            guard origin.isSecure || ["localhost", "127.0.0.1", "[::1]"].contains(origin.host.description) else {
                throw reader.issue(key, "\(text) has no TLS: anybody on the way could write its pages. Use https")
            }
            return origin.description
        }
    }
}
