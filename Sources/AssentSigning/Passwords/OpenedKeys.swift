import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Crypto
import Foundation

/// Keys that a password has opened, for one use.
struct OpenedKeys {
    /// What was sealed, by the keys' labels.
    let contents: [String: SealedKeyContent]
    /// What scrypt made of the password.
    let s: Secret
    /// `assisted`: the evaluation, which the server has confirmed.
    var unl: SigningID?

    /// When the password was set.
    var passwordTime: Int { contents.values.map(\.passwordTime).min() ?? 0 }

    /// What must not come back, the newest first.
    var history: [SealedKeyContent.Earlier] { contents.values.first?.history ?? [] }

    func signingKey(_ label: String) throws -> SoftwareSigningKey {
        guard let scalar = contents[label]?.scalar else { throw SigningError(.credentialsLost) }
        return try Self.signingKey(scalar)
    }

    func agreementKey(_ label: String) throws -> SoftwareAgreementKey {
        guard let scalar = contents[label]?.scalar else { throw SigningError(.credentialsLost) }
        return try Self.agreementKey(scalar)
    }

    static func signingKey(_ scalar: Secret) throws -> SoftwareSigningKey {
        let key = try scalar.withUnsafeBytes { try P256.Signing.PrivateKey(rawRepresentation: $0) }
        return try SoftwareSigningKey(algorithm: .es256, privateKey: Secret(bytes: key.derRepresentation))
    }

    static func agreementKey(_ scalar: Secret) throws -> SoftwareAgreementKey {
        let key = try scalar.withUnsafeBytes { try P256.KeyAgreement.PrivateKey(rawRepresentation: $0) }
        return try SoftwareAgreementKey(privateKey: Secret(bytes: key.derRepresentation))
    }

    /// A new private key: 32 bytes.
    static func newScalar() -> Secret { Secret(bytes: P256.Signing.PrivateKey().rawRepresentation) }
}

/// What an app has let the device remember of a password. It never leaves the memory.
struct RememberedPassword {
    let s: Secret
    let generation: Int
    let until: Duration
    var uses: Int
}

/// The open key of a session. Nothing in it comes from the password.
struct OpenSession {
    let key: SoftwareAgreementKey
    let generation: Int
    let salt: [UInt8]
    let passwordTime: Int
}
