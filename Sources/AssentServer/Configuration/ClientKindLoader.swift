import AssentConfiguration
import AssentCore
import AssentEngine
import AssentJOSE
import Foundation

/// Reads what a client proves itself with: a secret, keys, or nothing.
struct ClientKindLoader {
    let client: SettingsReader<Void>
    let paths: ConfigurationPaths

    private static let ways = ["jwksURI", "jwks", "secretFile", "secretHash"]

    func kind() throws -> OAuthClient.Kind {
        let present = Self.ways.filter(client.has)
        guard present.count <= 1 else {
            throw client.issue(present.first, "a client has one of secretFile, secretHash, jwks, jwksURI")
        }
        let algorithms = try algorithms()
        if client.has("jwks") { return .keyed(ClientKeys(.listed(try listed(algorithms)), algorithms: algorithms)) }
        if let url = client.optionalString("jwksURI") {
            if let fault = OutboundCalls.fault(in: url) { throw client.issue("jwksURI", fault) }
            return .keyed(ClientKeys(.fetched(url), algorithms: algorithms))
        }
        guard !client.has("assertionAlgorithms") else {
            throw client.issue("assertionAlgorithms", "is for clients with keys: this one has no jwks and no jwksURI")
        }
        if let hash = client.optionalString("secretHash") { return .confidential(secretHash: hash) }
        guard let file = client.optionalString("secretFile") else { return .public }
        let secret = try PrivateFile.text(paths.resolve(file)).trimmingCharacters(in: .whitespacesAndNewlines)
        guard secret.utf8.count >= 32 else {
            throw client.issue("secretFile", "a client's secret has at least 32 characters, made by a machine")
        }
        return .confidential(secretHash: OAuthClient.hash(ofSecret: Secret(secret)))
    }

    private func algorithms() throws -> Set<SignatureAlgorithm> {
        guard client.has("assertionAlgorithms") else { return Set(ClientKeys.usualAlgorithms) }
        let algorithms = client.strings("assertionAlgorithms").map(SignatureAlgorithm.init(rawValue:))
        let known = ClientKeys.knownAlgorithms.map(\.rawValue).joined(separator: ", ")
        for algorithm in algorithms where !ClientKeys.knownAlgorithms.contains(algorithm) {
            throw client.issue("assertionAlgorithms", "\(algorithm.rawValue) is not supported; known: \(known)")
        }
        guard !algorithms.isEmpty else { throw client.issue("assertionAlgorithms", "is empty; known: \(known)") }
        return Set(algorithms)
    }

    private func listed(_ algorithms: Set<SignatureAlgorithm>) throws -> JWKSet {
        do {
            return try ClientKeys.listed(client.json("jwks") ?? .null, for: algorithms)
        } catch {
            throw client.issue("jwks", error.detail)
        }
    }
}
