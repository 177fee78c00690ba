import AssentCore
import AssentJOSE
import AssentPeers
import Testing

/// An installation of an app that registers at our server with TLS (docs/registration.md) by Authlib, and lives on as a
/// client with a key of its own. Authlib makes no proofs: joserfc signs them. What the script asserts itself is in it.
@Suite(
    "Authlib registers at our server",
    .enabled(if: Peer.hasPython, "The packages of requirements.txt are missing: run Scripts/setup.sh --tests"))
struct RegistrationClientTests {
    private static let publisher = "https://publisher.example"

    private static func app(_ key: JWK) -> String {
        """
        pay:
          name: Example Pay
          redirectURIs: ["http://127.0.0.1/cb"]
          scopes: [openid, profile]
          registration: statement
          registrationsPerAddress: 100
          softwareStatements: {issuer: "\(publisher)", jwks: {keys: [\(key.json.serialized())]}}
        """
    }

    @Test("It registers, signs a user in by its key, changes name and key, and ends; without the key all is refused")
    func authlib() async throws {
        let key = try SoftwareSigningKey.generate(.es256)
        let publicKey = try JWK(publicKeyInfo: key.publicKeyInfo)
        // Authlib makes assertions that are valid for an hour of its own clock, which is as long as may be.
        try await OurServer.run(apps: Self.app(publicKey), clock: SystemClock()) { server in
            guard case .object(var job) = try server.job(client: "", authentication: "none") else { return }
            job["software_id"] = "pay"
            job["publisher"] = [
                "issuer": .string(Self.publisher), "key": .string(Self.pem(key)),
            ]
            let seen = try await Peer.run("registration_flow.py", .object(job))
            let bad: JSONValue = [400, "invalid_dpop_proof"]
            #expect(seen["other_proof"] == bad && seen["no_proof"] == bad)
            #expect(seen["no_statement"] == [400, "invalid_software_statement"])
            #expect(seen["other_app"] == [400, "unapproved_software_statement"])
            #expect(seen["foreign_redirect"] == [400, "invalid_redirect_uri"])
            #expect(
                seen["registered"] == [
                    "of_app": true, "name": "Ana's laptop", "method": "private_key_jwt", "secret": false, "key": true,
                    "beside": true, "stored": false,
                ])
            #expect(seen["tokens"] == ["type": "DPoP", "name": "Ana Alvarez"])
            #expect(seen["refreshed"] == "DPoP")

            let refused: JSONValue = [401, "invalid_token"]
            #expect(
                seen["stolen"] == ["other_key": refused, "bearer": refused, "ends": refused, "other_token": refused])
            #expect(seen["read"] == [200, true])
            #expect(seen["renamed"] == [200, "Ana's desk"])
            #expect(seen["unproved_key"] == [401, "invalid_dpop_proof"])
            #expect(seen["new_key"] == [200, .null])
            #expect(seen["old_key"] == ["reads": refused, "refreshes": "invalid_client"])
            #expect(seen["newer_key"] == "DPoP")

            #expect(seen["ended"] == 204)
            #expect(seen["after"] == ["read": refused, "refresh": "invalid_client", "userinfo": 401])
        }
    }

    /// The private key as PKCS#8, which the script is told on its standard input.
    private static func pem(_ key: SoftwareSigningKey) -> String {
        let text = Base64URL.encode(key.privateKey.revealBytes())
            .replacing("-", with: "+").replacing("_", with: "/")
        let padding = String(repeating: "=", count: (4 - text.count % 4) % 4)
        return "-----BEGIN PRIVATE KEY-----\n\(text)\(padding)\n-----END PRIVATE KEY-----\n"
    }
}
