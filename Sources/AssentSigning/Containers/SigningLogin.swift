package import AssentCore
import AssentJOSE
import AssentSigningProtocol

/// What one sending of a login says.
package struct SigningLoginRequest: Sendable {
    /// The issuer of the OAuth provider.
    package var audience: String
    /// The thumbprint of the installation's key.
    package var keyThumbprint: String
    /// The nonce of the proof beside it.
    package var nonce: String
    /// Seconds since 1970.
    package var time: Int64

    package init(audience: String, keyThumbprint: String, nonce: String, time: Int64) {
        (self.audience, self.keyThumbprint, self.nonce, self.time) = (audience, keyThumbprint, nonce, time)
    }
}

/// A key with which logins of one container are signed: of a PIN that was right, or the device key.
package struct SigningLoginKey: Sendable {
    let key: any SigningKey
    let did: SigningID
    let sub: String
    let unl: SigningID?
    let random: any RandomSource

    /// Signs a login (`tsp-login+jwt`).
    package func assertion(_ request: SigningLoginRequest) async throws -> Secret {
        guard let jkt = KeyThumbprint(text: request.keyThumbprint) else { throw SigningError(.internal) }
        let content = LoginAssertion(
            did: did, sub: sub, audience: request.audience, jkt: jkt, nonce: request.nonce, unl: unl,
            jti: SigningID(random: random), issuedAt: Int(request.time))
        return Secret(try await SignedMessage.sign(content, with: key).compact)
    }
}

extension SigningContainer {
    /// The device key, for a login of a user who types nothing.
    ///
    /// - Throws: ``SigningError`` with code `credentialsLost`.
    package func implicitLogin() async throws -> SigningLoginKey {
        let parts = device.parts
        let stored = try await parts.records.load(record)
        return try await SigningLoginKey(
            key: parts.provider.device(stored), did: stored.knownDid, sub: userID, unl: nil, random: parts.random)
    }

    /// The key by which a PIN can sign its user in: an `auth` key whose password the server helps to check.
    private var loginKey: Key? {
        keys(usage: .auth).first { key in
            key.password.flatMap { password($0) }?.mode == .assisted
        }
    }

    /// Opens the key for logins, which is two calls. When this returns the server has counted and confirmed the PIN,
    /// and one login may follow.
    ///
    /// - Throws: ``SigningError``: `unsupportedOperation` when the container has no such key; as
    ///   ``SigningPassword/verify(_:)``.
    package func login(pin: Secret) async throws -> SigningLoginKey {
        guard let key = loginKey, let slot = key.password else {
            throw SigningError(.unsupportedOperation, "No key of this container is for logins with a PIN.")
        }
        let parts = device.parts
        let opened = try await parts.passwords.opened(record, slot, pin, for: .use)
        let stored = try await parts.records.load(record)
        return SigningLoginKey(
            key: try opened.signingKey(key.label), did: try stored.knownDid, sub: userID, unl: opened.unl,
            random: parts.random)
    }
}

extension SigningDevice {
    /// The container that signs in a user, by id or name. The server lets a container log in at the installation that
    /// has made its invite, so one that the app made with the user's own session comes before those that a code made.
    ///
    /// - Throws: ``SigningError`` with code `invalidContainer` when there is none, `inexplicitContainer` when two could
    ///   sign in.
    package func loginContainer(of user: String) async throws -> SigningContainer {
        let all = try await containers(matching: ContainerFilter(user: user))
        let own = all.filter { $0.isOwn && $0.state != .unconfirmed }
        return try (own.isEmpty ? all : own).single()
    }
}
