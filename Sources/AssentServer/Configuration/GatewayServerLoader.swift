import AssentConfiguration
import AssentCore
import AssentEnforcement
import AssentJOSE
import Foundation
import SwiftASN1

extension GatewayServerConfiguration {
    /// Reads and checks a file.
    ///
    /// Relative paths in it are relative to the file's own directory.
    /// - Throws: ``/AssentConfiguration/ConfigurationError`` with file, line and what to do.
    public static func load(file: String) throws -> GatewayServerConfiguration {
        try parse(ConfigurationFile.text(of: file), file: file)
    }

    /// Reads and checks the text of a file.
    static func parse(_ text: String, file: String) throws -> GatewayServerConfiguration {
        try ConfigurationFile.read(text, file: file) { root in
            try GatewayServerLoader(root: root, file: file).configuration()
        }
    }

    /// Whether a file is that of a gateway without an engine.
    package static func describes(file: String) -> Bool {
        guard let text = try? ConfigurationFile.text(of: file) else { return false }
        let has = try? ConfigurationFile.read(text, file: file) { root in
            // Each key counts as read.
            _ = root.keys
            return root.has("engine")
        }
        return has ?? false
    }
}

/// Reads the file of a gateway without an engine.
struct GatewayServerLoader {
    private let root: SettingsReader<Void>
    private let file: String
    private let paths: ConfigurationPaths

    init(root: SettingsReader<Void>, file: String) {
        self.root = root
        self.file = file
        paths = ConfigurationPaths(file: file)
    }

    /// What belongs to the server that has the engine.
    private static let engineKeys = [
        "realms", "database", "masterKeyFile", "dataDirectory", "passwordCost", "passwords", "pages", "outbound",
        "notify", "clockDifferenceSeconds", "transactionsPerMinute", "journeyStartsPerMinute", "checksPerAddress",
        "cookieSameSite", "cookiePartitioned", "administrationRealm",
    ]

    func configuration() throws -> GatewayServerConfiguration {
        if let key = Self.engineKeys.first(where: root.has) {
            throw root.issue(key, "belongs in the file of the server that decides: a gateway alone has no \(key)")
        }
        guard !root.has("publicURL") else {
            throw root.issue("publicURL", "stands in the section gateway: there is no other address here")
        }
        let isDevelopment = root.bool("development", default: false)
        let (host, healthPort) = try listen(isDevelopment: isDevelopment)
        let engine = try engine(root.mapping("engine"))
        let gateway = try GatewayLoader(realms: .elsewhere(Set(engine.realms.keys)), paths: paths).gateway(
            root.mapping("gateway"), besides: nil)
        guard healthPort == nil || healthPort == 0 || healthPort != gateway.port else {
            throw root.issue("listen", "healthPort must be another port than gateway.port, whose paths are of services")
        }
        guard let tls = root.optionalMapping("tls") else {
            throw root.issue(nil, "tls is missing: name certificate and privateKey")
        }
        let cookieName = root.optionalString("cookieName") ?? WireName.sessionCookie
        guard SessionCookie.isValid(name: cookieName) else {
            throw root.issue("cookieName", "must be a name that a header field can have")
        }
        var read = GatewayServerConfiguration(
            file: file, host: host, certificate: paths.resolve(tls.string("certificate")),
            privateKey: paths.resolve(tls.string("privateKey")), engine: engine, gateway: gateway,
            cookieName: cookieName)
        read.healthPort = healthPort
        tls.finish()
        read.hosts = root.strings("hosts")
        if let name = read.hosts.first(where: { (try? NormalizedHost($0)) == nil }) {
            throw root.issue("hosts", "\(name) is not a host name or an address, without a port")
        }
        read.trustedProxies = try ServerConfiguration.trustedProxies(root)
        read.connectionsPerAddress = root.optionalInteger("connectionsPerAddress", in: 1...1_000_000)
        read.drainSeconds = root.integer("drainSeconds", default: read.drainSeconds, in: 1...600)
        read.sendsHSTS = root.bool("hsts", default: !isDevelopment)
        return read
    }

    private func listen(isDevelopment: Bool) throws -> (host: String, healthPort: Int?) {
        guard let listen = root.optionalMapping("listen") else { return ("127.0.0.1", nil) }
        guard !listen.has("port") else {
            throw listen.issue("port", "is gateway.port here; the port of /healthz and /readyz is healthPort")
        }
        let host = listen.optionalString("host") ?? "127.0.0.1"
        let healthPort = listen.optionalInteger("healthPort", in: 0...65_535)
        listen.finish()
        if isDevelopment, !["127.0.0.1", "::1", "localhost"].contains(host) {
            throw listen.issue("host", "development: true listens on loopback only; host must be 127.0.0.1")
        }
        return (host, healthPort)
    }

    private func engine(_ reader: SettingsReader<Void>) throws -> EngineSettings {
        let url = try ServerConfiguration.publicURL(reader, "url", allowsPath: true)
        var settings = EngineSettings(
            url: url,
            publicURL: reader.has("publicURL")
                ? try ServerConfiguration.publicURL(reader, "publicURL", allowsPath: true) : url,
            realms: [:])
        for (name, client) in reader.mappings("realms") {
            let realm = RealmLoader.realmName(name)
            do {
                _ = try PolicyServer(url, realm: realm)
            } catch {
                throw reader.issue("realms", "\(name) cannot be used: \(error.detail)")
            }
            settings.realms[realm] = try self.client(client)
        }
        guard !settings.realms.isEmpty else {
            throw reader.issue("realms", "must name a realm with the gateway's client, for example alpha")
        }
        if let file = reader.optionalString("authorities") { settings.tls.authorities = .pemFile(paths.resolve(file)) }
        for text in reader.strings("pins") {
            do {
                settings.tls.pins.append(try Pin(text))
            } catch {
                throw reader.issue("pins", "\(error.detail) \(error.suggestion ?? "")")
            }
        }
        guard Set(settings.tls.pins).count == settings.tls.pins.count else {
            throw reader.issue("pins", "one is there twice")
        }
        reader.finish()
        return settings
    }

    private func client(_ reader: SettingsReader<Void>) throws -> EngineSettings.Client {
        let id = reader.string("clientID")
        guard reader.has("secretFile") != reader.has("privateKey") else {
            throw reader.issue(nil, "a client has secretFile or privateKey")
        }
        let proof: EngineSettings.Client.Proof
        if let file = reader.optionalString("secretFile") {
            let secret = try PrivateFile.text(paths.resolve(file)).trimmingCharacters(in: .whitespacesAndNewlines)
            guard !secret.isEmpty else { throw reader.issue("secretFile", "is empty") }
            proof = .secret(Secret(secret))
        } else {
            proof = .key(try key(reader, "privateKey"), keyID: reader.optionalString("keyID"))
        }
        var client = EngineSettings.Client(id: id, proof: proof)
        if reader.has("proofKey") {
            let key = try key(reader, "proofKey")
            guard DPoPProof.algorithms.contains(key.algorithm) else {
                throw reader.issue("proofKey", "must be a key for ES256, ES384 or EdDSA")
            }
            client.proofKey = key
        }
        reader.finish()
        return client
    }

    /// What a key in PKCS#8 may sign with, the first that fits.
    private static let algorithms: [SignatureAlgorithm] = [.es256, .es384, .es512, .edDSA, .rs256]

    private func key(_ reader: SettingsReader<Void>, _ name: String) throws -> any SigningKey {
        let file = paths.resolve(reader.string(name))
        let text = String(decoding: try PrivateFile.read(file, limit: 16 << 10, isNamed: true), as: UTF8.self)
        guard let document = try? PEMDocument(pemString: text), document.discriminator == "PRIVATE KEY" else {
            throw reader.issue(name, "\(file) is not a key in PEM that begins with BEGIN PRIVATE KEY (PKCS#8)")
        }
        let der = Secret(bytes: document.derBytes)
        for algorithm in Self.algorithms {
            if let key = try? SoftwareSigningKey(algorithm: algorithm, privateKey: der) { return key }
        }
        throw reader.issue(name, "\(file) is not a key that can sign: make one for ES256")
    }
}
