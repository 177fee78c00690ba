import AssentCore
import AssentEngine
import AssentSigningProtocol
package import AssentServer

extension ServerConfiguration {
    /// Lets the app of the story remember its users, which the example's file does not: each device gets a key for
    /// logins behind a PIN, and users who type nothing are greeted.
    ///
    /// - Throws: `SigningProtocolError`.
    package mutating func rememberUsersOfStory() throws {
        for index in realms.indices { try realms[index].rememberUsers(ofApp: InstallationScene.app) }
    }
}

extension RealmConfiguration {
    fileprivate mutating func rememberUsers(ofApp id: String) throws {
        guard let app = apps.firstIndex(where: { $0.client.id == id }), var signing else { return }
        apps[app].client.grantTypes.insert(.jwtBearer)
        apps[app].implicitScopes = ["profile"]
        signing.policies.append(try Self.pin())
        signing.keys.append(SigningSettings.offered(.auth, "login", policy: "pin", of: signing.policies))
        self.signing = signing
    }

    /// What the server makes of `{mode: assisted, password: {minLength: 4}}`, with less work for each try.
    private static func pin() throws -> ProtectionPolicy {
        let policy: JSONObject = [
            "id": "pin", "type": "password", "mode": "assisted", "kdf": "$scrypt$ln=14,r=8,p=1",
            "password": [
                "minLength": 4, "maxLength": 64, "sequences": false, "common": false, "history": 0, "minAge": 0,
                "maxAge": 0, "cache": 0,
            ],
            "lock": ["type": "counter", "max": 5, "cap": 20, "delays": [0, 0, 30, 60]],
        ]
        return try ProtectionPolicy(plaintext: JSONValue.object(policy).serializedBytes())
    }
}
