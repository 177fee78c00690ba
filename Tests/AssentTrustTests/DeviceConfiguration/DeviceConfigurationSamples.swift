import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation
import Testing

@testable import AssentTrust

/// Device configurations for tests.
struct DeviceConfigurationSamples {
    static let app = ConfiguredApp(audience: "bank-app/linux/production", version: "3.2.0")
    static let time = TrustSamples.time

    let key: SoftwareSigningKey
    let stranger: SoftwareSigningKey

    init() throws {
        key = try .generate(.es256)
        stranger = try .generate(.es256)
    }

    var keys: [ProtocolKey] { get throws { [try ProtocolKey(key)] } }

    func members(_ version: Int = 7, _ changes: [String: JSONValue?] = [:]) -> JSONObject {
        var object: JSONObject = [
            "v": 1, "aud": "bank-app/linux/production", "app_version": "3.2.0", "version": .integer(version),
            "iat": .integer(Self.time), "exp": .integer(Self.time + 300), "status": "enabled",
            "minimumVersion": "3.0", "payloadEncryption": "on", "implicit": true, "stateless": false,
            "webLinks": ["https://bank.example/start"],
        ]
        for (name, value) in changes { object[name] = value }
        return object
    }

    func sign(
        _ members: JSONObject, by signer: SoftwareSigningKey? = nil, header changes: [String: JSONValue?] = [:]
    ) async throws -> String {
        try await sign(JSONValue.object(members).serializedBytes(), by: signer, header: changes)
    }

    func sign(
        _ payload: [UInt8], by signer: SoftwareSigningKey? = nil, header changes: [String: JSONValue?] = [:]
    ) async throws -> String {
        let signer = signer ?? key
        var header: JSONObject = [
            "typ": "assent-device-config+jwt", "kid": .string(try ProtocolKey(signer).thumbprint.text),
        ]
        for (name, value) in changes { header[name] = value }
        return try await JWS.sign(payload, header: header, with: signer)
    }

    func document(_ version: Int = 7, _ changes: [String: JSONValue?] = [:]) async throws -> String {
        try await sign(members(version, changes))
    }

    /// Why a document is refused; `nil` when it is not.
    func refusal(_ text: String) throws -> TrustFileError.Code? {
        let keys = try keys
        do throws(TrustFileError) {
            _ = try DeviceConfiguration(text, keys: keys, for: Self.app)
            return nil
        } catch {
            return error.code
        }
    }
}
