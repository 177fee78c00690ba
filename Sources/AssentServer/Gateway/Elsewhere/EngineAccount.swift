import AssentCore
import AssentEnforcement
import AssentJOSE

extension EngineSettings.Client {
    /// What the gateway's own client proves itself with.
    enum Proof: Sendable {
        /// Its secret (`client_secret_basic`).
        case secret(Secret)
        /// Its key (`private_key_jwt`; RFC 7523).
        case key(any SigningKey, keyID: String?)
    }
}

extension EngineSettings {
    private static let assertionLifetime: Int64 = 60

    /// The gateway's own client at the provider of a realm.
    ///
    /// - Throws: `EnforcementError` for a URL or a realm that cannot be used.
    func account(
        of client: Client, realm: String, over transport: any HTTPTransport, clock: any WallClock,
        random: any RandomSource
    ) throws(EnforcementError) -> ClientAccount {
        let proof: ClientAccount.Proof
        switch client.proof {
        case .secret(let secret): proof = .secret(secret)
        case .key(let key, let keyID):
            // By this name the provider takes assertions.
            let issuer = try PolicyServer(publicURL, realm: realm).issuer
            proof = .assertion {
                try await Self.assertion(
                    of: client.id, for: issuer, by: key, keyID: keyID, at: clock.epochSeconds,
                    id: random.token(byteCount: 16))
            }
        }
        return ClientAccount(
            try PolicyServer(url, realm: realm), clientID: client.id, proof: proof,
            tokenType: client.proofKey == nil ? .bearer : .dpop, transport: transport, clock: clock)
    }

    private static func assertion(
        of clientID: String, for issuer: String, by key: any SigningKey, keyID: String?, at now: Int64, id: String
    ) async throws -> String {
        let claims: JSONObject = [
            "iss": .string(clientID), "sub": .string(clientID), "aud": .string(issuer), "jti": .string(id),
            "iat": .integer(now), "exp": .integer(now + assertionLifetime),
        ]
        var header: JSONObject = ["typ": "JWT"]
        if let keyID { header["kid"] = .string(keyID) }
        return try await JWS.sign(JSONValue.object(claims).serializedBytes(), header: header, with: key)
    }
}
