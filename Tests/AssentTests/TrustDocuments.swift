import Assent
import AssentTesting
import Foundation
import Testing

/// Which version a trust file is, and the two keys that sign it and may sign the next one.
struct TrustEdition {
    let version: Int
    let keys: [SoftwareSigningKey]
}

/// The two signed documents of an app, for its tests.
extension Servers {
    /// A file with the bank's host, whose pins end in an hour, and the server's. The first version, by keys of its own,
    /// unless it is an edition of others.
    func trustFile(
        sends: [String], payload: JSONValue? = nil, debugger: String = "off", development: Bool = false,
        config: SoftwareSigningKey? = nil, source: String? = nil, edition: TrustEdition? = nil
    ) async throws -> TrustFile {
        let now = clock.epochSeconds
        func host(_ name: String, _ sends: [String]) -> JSONValue {
            let pins: [JSONValue] = (1...2).map { number in
                let digest = Base64URL.encode([UInt8](repeating: UInt8(number), count: 32))
                return ["spki": .string(digest), "notAfter": .integer(now + 3600)]
            }
            return ["host": .string(name), "pins": .array(pins), "sends": .array(sends.map(JSONValue.string))]
        }
        let keys = try edition?.keys ?? (1...2).map { _ in try SoftwareSigningKey.generate(.es256) }
        let jwks = try keys.map { try JWK(publicKeyInfo: $0.publicKeyInfo) }
        let signer = try #require(keys.first)
        var members: JSONObject = [
            "v": 1, "aud": "app/linux/test", "version": .integer(edition?.version ?? 1), "iat": .integer(now),
            "keys": .array(jwks.map(\.json)),
            "hosts": [host("am.example.com", []), host("api.bank.example", sends)],
            "issuer": "https://am.example.com/am/oauth2/realms/root/realms/alpha",
            "identity": .string(Base64URL.encode([UInt8](repeating: 9, count: 32))),
            "config": .array(try config.map { [try JWK(publicKeyInfo: $0.publicKeyInfo).json] } ?? jwks.map(\.json)),
            "controls": ["debugger": .string(debugger), "rooted": "off", "preload": "off"],
            "source": .array(source.map { [.string($0)] } ?? []),
        ]
        if let payload { members["payload"] = payload }
        if development { members["development"] = true }
        let header: JSONObject = ["typ": "assent-trust+jwt", "kid": .string(jwks[0].thumbprint)]
        return try TrustFile(
            shipped: try await JWS.sign(JSONValue.object(members).serializedBytes(), header: header, with: signer))
    }

    /// What a trust file says of calls to the bank that are sealed with the keys of these listeners.
    func sealing(_ mode: String, with listeners: [SealedListener]) throws -> JSONValue {
        let keys = try listeners.map { listener in
            JSONValue(
                dictionaryLiteral: ("kid", .string(try Assent.PayloadEncryption.Key(listener.publicKey).kid)),
                ("x", .string(listener.publicKey)), ("notAfter", .integer(clock.epochSeconds + 3600)))
        }
        return [
            "suite": "pe1", "mode": .string(mode), "keys": .array(keys), "origins": [.string(SealedListener.origin)],
        ]
    }

    /// What the server tells this app, which says no version; with changes.
    func deviceConfiguration(
        _ changes: [String: JSONValue?] = [:], by key: SoftwareSigningKey
    ) async throws -> String {
        let now = clock.epochSeconds
        var members: JSONObject = [
            "v": 1, "aud": "app/linux/test", "app_version": "0", "version": 7, "iat": .integer(now),
            "exp": .integer(now + 300), "status": "enabled", "payloadEncryption": "on", "implicit": true,
            "stateless": true, "webLinks": [],
        ]
        for (name, value) in changes { members[name] = value }
        let header: JSONObject = [
            "typ": "assent-device-config+jwt",
            "kid": .string(try JWK(publicKeyInfo: key.publicKeyInfo).thumbprint),
        ]
        return try await JWS.sign(JSONValue.object(members).serializedBytes(), header: header, with: key)
    }
}
