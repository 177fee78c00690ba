import AssentConfiguration
import AssentCore
import AssentEngine

/// Reads what a route says of the services behind it.
struct UpstreamLoader {
    let reader: SettingsReader<Void>
    let paths: ConfigurationPaths

    func settings() throws -> UpstreamSettings {
        var settings = UpstreamSettings(try addresses())
        settings.check = try check(settings)
        settings.timeouts = timeouts()
        settings.tls = try tls(settings)
        return settings
    }

    private func addresses() throws -> [String] {
        guard reader.has("upstreams") else {
            let address = reader.string("upstream")
            _ = try origin(address, "upstream")
            return [address]
        }
        guard !reader.has("upstream") else { throw reader.issue("upstreams", "a route has upstream or upstreams") }
        let addresses = reader.strings("upstreams")
        guard (1...UpstreamSettings.maximumAddresses).contains(addresses.count) else {
            throw reader.issue("upstreams", "a route has 1 to \(UpstreamSettings.maximumAddresses) of them")
        }
        let origins = try addresses.map { try origin($0, "upstreams") }
        guard Set(origins).count == origins.count else { throw reader.issue("upstreams", "one is there twice") }
        return addresses
    }

    private func origin(_ address: String, _ key: String) throws -> Origin {
        guard let origin = try? Origin(headerValue: address) else {
            throw reader.issue(key, "must be scheme, host and port, for example http://127.0.0.1:9080")
        }
        return origin
    }

    private func check(_ settings: UpstreamSettings) throws -> UpstreamSettings.HealthCheck? {
        guard let check = reader.optionalMapping("healthCheck") else { return nil }
        guard settings.addresses.count > 1 else {
            throw reader.issue("healthCheck", "belongs to several upstreams: one alone is asked in any case")
        }
        let path = check.string("path")
        guard path.hasPrefix("/"), (try? CanonicalResource("http://service.example\(path)"))?.target == path else {
            throw check.issue("path", "must be a path as it is sent, for example /healthz")
        }
        let read = UpstreamSettings.HealthCheck(
            path: path, everySeconds: check.integer("everySeconds", default: 10, in: 1...3600))
        check.finish()
        return read
    }

    private func timeouts() -> UpstreamSettings.Timeouts {
        var timeouts = UpstreamSettings.Timeouts()
        guard let section = reader.optionalMapping("timeouts") else { return timeouts }
        timeouts.connect = section.integer("connectSeconds", default: timeouts.connect, in: 1...60)
        timeouts.head = section.integer("headSeconds", default: timeouts.head, in: 1...3600)
        timeouts.silence = section.integer("silenceSeconds", default: timeouts.silence, in: 1...3600)
        timeouts.total = section.optionalInteger("totalSeconds", in: 1...86_400)
        section.finish()
        return timeouts
    }

    private func tls(_ settings: UpstreamSettings) throws -> UpstreamSettings.TLS {
        var tls = UpstreamSettings.TLS()
        guard let section = reader.optionalMapping("upstreamTLS") else { return tls }
        guard settings.addresses.allSatisfy({ $0.lowercased().hasPrefix("https:") }) else {
            throw reader.issue("upstreamTLS", "belongs to services whose addresses begin with https")
        }
        if let file = section.optionalString("authorities") { tls.authorities = .pemFile(paths.resolve(file)) }
        for text in section.strings("pins") {
            do {
                tls.pins.append(try Pin(text))
            } catch {
                throw section.issue("pins", "\(error.detail) \(error.suggestion ?? "")")
            }
        }
        guard Set(tls.pins).count == tls.pins.count else { throw section.issue("pins", "one is there twice") }
        if section.has("certificate") || section.has("privateKey") {
            tls.certificate = .init(
                chain: paths.resolve(section.string("certificate")),
                privateKey: paths.resolve(section.string("privateKey")))
        }
        section.finish()
        return tls
    }
}
