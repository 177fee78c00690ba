import AssentCore
import AssentEngine
import AssentSigningProtocol

/// Reads one of the `policies` of `signing`: how keys are protected by a password. What is not said is as in the
/// protocol's own example.
struct SigningPolicyLoader {
    let reader: SettingsReader<Void>

    private static let rules: JSONObject = [
        "minLength": 6, "maxLength": 64, "sequences": false, "common": false, "history": 0, "minAge": 0, "maxAge": 0,
        "cache": 0,
    ]

    private static let assistedLock: JSONObject = [
        "type": "counter", "max": 5, "cap": 20, "delays": [0, 0, 30, 60],
    ]

    func policy(_ name: String) throws -> ProtectionPolicy {
        let mode = reader.string("mode")
        guard let known = PasswordMode(rawValue: mode) else {
            let hint = mode == "silent" ? " silent is not supported: a key always shows that a password is wrong" : ""
            throw reader.issue("mode", "can only be: local, assisted.\(hint)")
        }
        let members: JSONObject = [
            "id": .string(name), "type": .string(reader.string("type", default: "password")), "mode": .string(mode),
            "kdf": .string(reader.string("kdf", default: "$scrypt$ln=15,r=8,p=1")),
            "password": .object(try object("password", Self.rules)),
            "lock": .object(try lock(known)),
        ]
        reader.finish()
        do {
            return try ProtectionPolicy(plaintext: JSONValue.object(members).serializedBytes())
        } catch {
            throw reader.issue(error.member?.split(separator: ".").first.map(String.init), error.detail)
        }
    }

    private func lock(_ mode: PasswordMode) throws -> JSONObject {
        switch mode {
        case .assisted: return try object("lock", Self.assistedLock)
        case .local:
            // Each kind of lock has members of its own.
            return reader.has("lock") ? try object("lock", [:]) : ["type": "counter", "max": 5]
        }
    }

    /// A mapping, with what is missing in it.
    private func object(_ key: String, _ missing: JSONObject) throws -> JSONObject {
        guard let value = reader.json(key) else { return missing }
        guard case .object(var object) = value else { throw reader.issue(key, "must be a mapping") }
        for member in missing.members where object[member.name] == nil { object[member.name] = member.value }
        return object
    }
}
