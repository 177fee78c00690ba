package import AssentCore
import Crypto
import Foundation

/// The key from outside the database under which the database's secrets are sealed (AES-256-GCM, a derived key for each
/// purpose).
package struct MasterKey: Sendable {
    /// What a sealed value is for. A value sealed for one purpose does not open for another.
    package enum Purpose: String, Sendable, CaseIterable {
        /// Seeds of one-time password credentials.
        case oneTimePasswordSeed = "otp-seed"
        /// The server's private keys.
        case serverKey = "server-key"
        /// A journey's state between two steps.
        case journeyState = "journey-state"
        /// The successor of a rotated refresh token, kept for the grace.
        case refreshSuccessor = "refresh-successor"
        /// Signs the pointers to stored journey steps.
        case authID = "auth-id"
        /// Recognises the answers to a journey step when they come again.
        case journeyAnswer = "journey-answer"
        /// The token that makes the first administrator.
        case bootstrapToken = "bootstrap-token"
        /// The private keys of an issuer of transaction signing.
        case signingKey = "signing-key"
        /// What a signing device must send back, and the key of its transactions' handles.
        case signingContainer = "signing-container"
        /// The keys that evaluate blinded passwords of signing devices.
        case signingSlot = "signing-slot"
        /// Names evaluations.
        case signingEvaluation = "signing-evaluation"
        /// Makes and recognises the nonces that signing devices put into their proofs.
        case signingNonce = "signing-nonce"
        /// Makes and recognises the nonces of the authorization server for proofs of a key (DPoP).
        case serverNonce = "server-nonce"
        /// The same for the gateway, whose nonces the authorization server does not take.
        case gatewayNonce = "gateway-nonce"
        /// Finds the invite of a code.
        case signingCode = "signing-code"
        /// The static keys of payload encryption.
        case payloadKey = "payload-key"
        /// The keys of its sessions.
        case payloadSession = "payload-session"
        /// Makes and recognises the ids of its sessions.
        case payloadSessionName = "payload-session-name"
        /// Hides from which networks users came.
        case usualNetwork = "usual-network"
        /// Tells whether it is the key of the database.
        case check
    }

    /// The key of each purpose. It is derived once, since a derivation takes longer than to seal a row.
    private let keys: [Purpose: SymmetricKey]
    private let key: Secret

    /// The number of bytes of a master key.
    package static let byteCount = 32

    /// A master key from its 32 bytes.
    package init(_ key: Secret) throws {
        guard key.count == Self.byteCount else {
            throw EngineError.internalFailure("a master key has \(Self.byteCount) bytes, this has \(key.count)")
        }
        self.key = key
        keys = Dictionary(uniqueKeysWithValues: Purpose.allCases.map { ($0, Self.derivedKey($0, from: key)) })
    }

    /// Seals `plaintext` for a purpose and a place (`context`, for example a row's id): nonce, ciphertext and tag.
    package func seal(_ plaintext: Secret, for purpose: Purpose, context: String) throws -> [UInt8] {
        let sealed = try plaintext.withUnsafeBytes {
            try AES.GCM.seal($0, using: derivedKey(purpose), authenticating: Data(context.utf8))
        }
        guard let combined = sealed.combined else { throw EngineError.internalFailure("sealing failed") }
        return [UInt8](combined)
    }

    /// Opens what ``seal(_:for:context:)`` made. Throws when it was changed, moved to another place or sealed under
    /// another key.
    package func open(_ sealed: [UInt8], for purpose: Purpose, context: String) throws -> Secret {
        do {
            let box = try AES.GCM.SealedBox(combined: sealed)
            let opened = try AES.GCM.open(box, using: derivedKey(purpose), authenticating: Data(context.utf8))
            return Secret(bytes: opened)
        } catch {
            throw EngineError.internalFailure(
                "a sealed value does not open: the master key is another one, or the database was changed")
        }
    }

    /// A key of 32 bytes for a purpose that does not seal, but signs.
    package func derivedSecret(for purpose: Purpose) -> Secret {
        Secret(derivedKey(purpose))
    }

    private func derivedKey(_ purpose: Purpose) -> SymmetricKey {
        keys[purpose] ?? Self.derivedKey(purpose, from: key)
    }

    private static func derivedKey(_ purpose: Purpose, from key: Secret) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: key.symmetricKey, info: Data("assent master key v1 \(purpose.rawValue)".utf8),
            outputByteCount: 32)
    }
}
