import AssentCore
import AssentJOSE
import Crypto

/// What a client sends back to go on: a signed pointer to a ``StoredStep``. All state is in the store, so an old
/// pointer cannot bring back an old count of attempts.
struct AuthID: Sendable {
    /// The id of the ``StoredStep``.
    let stepID: String

    /// The realm that it was made in.
    let realm: String

    /// When the journey expires, in seconds since 1970.
    let expiresAt: Int64

    /// The thumbprint of the key that each request of the journey must prove; `nil` for a journey that belongs to none.
    var keyThumbprint: String?
}

/// Signs and verifies ``AuthID``s, with a key of its own.
struct AuthIDSigner: Sendable {
    /// Says what the token is, so that no other token of ours can be taken for it.
    static let type = "assent-authid+jwt"

    /// The most bytes of an authId.
    static let byteLimit = 4096

    private let key: Secret
    private let keyID: String

    init(_ masterKey: MasterKey) {
        key = masterKey.derivedSecret(for: .authID)
        keyID = key.withUnsafeBytes { Base64URL.encode(Array(SHA256.hash(data: $0)).prefix(9)) }
    }

    /// The token. `authIndexType` and `authIndexValue` are there because AM's own pages look for them.
    func sign(_ authID: AuthID, journey: String, now: Int64) async throws -> Secret {
        var claims: JSONObject = [
            "sid": .string(authID.stepID), "realm": .string(authID.realm), "authIndexType": "service",
            "authIndexValue": .string(journey), "iat": .integer(now), "exp": .integer(authID.expiresAt),
        ]
        claims["jkt"] = authID.keyThumbprint.map(JSONValue.string)
        let header: JSONObject = ["typ": .string(Self.type), "kid": .string(keyID)]
        return Secret(
            try await JWS.sign(JSONValue.object(claims).serializedBytes(), header: header, with: HMACSigningKey(key)))
    }

    /// Reads a token.
    ///
    /// - Throws: ``EngineError`` `authIDUnreadable`, `authIDInvalid`. Whether it has expired is not looked at.
    func verify(_ token: String) throws(EngineError) -> AuthID {
        let unverified: UnverifiedJWS
        do {
            unverified = try UnverifiedJWS.parse(token, limit: Self.byteLimit)
        } catch {
            throw EngineError(.authIDUnreadable, "\(error.code)")
        }
        guard unverified.type == Self.type, unverified.keyID == keyID else { throw Self.invalid }
        do {
            let verified = try unverified.verified(hmacKey: key)
            let claims = try JSONValue.parse(verified.payload)
            guard let stepID = claims["sid"]?.string, let realm = claims["realm"]?.string,
                let expiresAt = claims["exp"]?.integer
            else { throw Self.invalid }
            return AuthID(
                stepID: stepID, realm: realm, expiresAt: expiresAt, keyThumbprint: claims["jkt"]?.string)
        } catch {
            throw Self.invalid
        }
    }

    private static let invalid = EngineError(.authIDInvalid)
}
