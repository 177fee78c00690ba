public import AssentCore
import Crypto
import Foundation

/// Elliptic Curve Integrated Encryption Scheme, byte for byte as Apple's Security framework does it.
///
/// For an exchange with what Apple devices seal, and to seal small secrets for a key whose private part sits in a
/// token, a TPM or a Secure Enclave. A sealed message is `ephemeral public point ‖ ciphertext ‖ 16-byte tag`: the
/// secret agreed on with a fresh key goes through the X9.63 KDF (SEC 1 §3.6.1) with the ephemeral point as shared info,
/// and AES-GCM takes its key from there: 128 bits on P-256, 256 bits on P-384. Its IV has 16 bytes, all zero, or in the
/// "variable IV" form those after the key. There is no associated data.
///
/// It says nothing about who sealed: everybody who knows the public point can.
///
/// Checked against what Apple's framework sealed: variable IV on P-256 with SHA-256, zero IV on P-384 with SHA-384. No
/// Apple-made message with zero IV on P-256 was available; that form is checked in both directions against an
/// independent implementation. Secrets that are handed over are wiped; the cipher's own buffers on the way are not.
public struct ECIES: Hashable, Sendable {
    private enum Digest {
        case sha256
        case sha384
    }

    /// Apple's `kSecKeyAlgorithmECIESEncryptionCofactorX963SHA256AESGCM`; use it only to read what is there.
    public static let cofactorX963SHA256AESGCM = ECIES(digest: .sha256, variableIV: false)
    /// Apple's `kSecKeyAlgorithmECIESEncryptionCofactorVariableIVX963SHA256AESGCM`.
    public static let cofactorVariableIVX963SHA256AESGCM = ECIES(digest: .sha256, variableIV: true)
    /// Apple's `kSecKeyAlgorithmECIESEncryptionCofactorX963SHA384AESGCM`; use it only to read what is there.
    public static let cofactorX963SHA384AESGCM = ECIES(digest: .sha384, variableIV: false)
    /// Apple's `kSecKeyAlgorithmECIESEncryptionCofactorVariableIVX963SHA384AESGCM`.
    public static let cofactorVariableIVX963SHA384AESGCM = ECIES(digest: .sha384, variableIV: true)

    /// The most bytes that are sealed at once.
    public static let byteLimit = 1 << 20

    private static let tagLength = 16
    private static let ivLength = 16

    private let digest: Digest
    private let variableIV: Bool

    /// Seals `message` for the holder of the private key to `publicPoint`, under a fresh ephemeral key.
    ///
    /// - Parameters:
    ///   - message: at most ``byteLimit`` bytes; may be empty.
    ///   - publicPoint: an uncompressed point (X9.63: `04 ‖ x ‖ y`) on P-256 or P-384.
    /// - Returns: ephemeral point, ciphertext and tag.
    /// - Throws: ``/AssentCore/SecretStoreError`` with code `invalidInput`.
    public func seal(_ message: Secret, to publicPoint: [UInt8]) throws -> [UInt8] {
        guard message.count <= Self.byteLimit else {
            throw SecretStoreError(
                .invalidInput,
                "ECIES seals at most \(Self.byteLimit) bytes at once. Seal a key, and the data with that.")
        }
        guard let curve = ECIESCurve(publicPoint) else {
            throw SecretStoreError(
                .invalidInput, "The recipient's key is not an uncompressed point on P-256 or P-384. Export it as X9.63."
            )
        }
        let (point, shared) = try curve.agreeWithFreshKey()
        let (key, nonce) = try derive(shared, ephemeral: point, curve: curve)
        let box = try message.withUnsafeBytes { try AES.GCM.seal($0, using: key, nonce: nonce) }
        return point + box.ciphertext + box.tag
    }

    /// Opens what was sealed for `key`.
    ///
    /// - Throws: ``/AssentCore/SecretStoreError`` with code `tampered` when another key or another form sealed it or
    ///   one bit was changed, which cannot be told apart, `invalidInput` when it is longer than ``byteLimit`` allows;
    ///   and what `key` throws.
    public func open(_ sealed: [UInt8], with key: any KeyAgreementKey) async throws -> Secret {
        guard let curve = ECIESCurve(key.publicPoint) else {
            throw SecretStoreError(
                .invalidInput, "This key is not on P-256 or P-384. Use the one that it was sealed for.")
        }
        guard sealed.count <= curve.pointLength + Self.byteLimit + Self.tagLength else {
            throw SecretStoreError(.invalidInput, "This is longer than what ECIES seals here. Check what was read.")
        }
        let point = Array(sealed.prefix(curve.pointLength))
        // A point that is not on the key's own curve would tell a careless key handle's caller about the key.
        guard sealed.count >= curve.pointLength + Self.tagLength, ECIESCurve(point)?.pointLength == curve.pointLength
        else { throw Self.notOpened }
        let shared = try await key.sharedSecret(with: point)
        guard shared.count == curve.coordinateLength else {
            throw SecretStoreError(
                .wrongKey, "The key answered with something that is not a shared secret. Check its device.")
        }
        let (symmetricKey, nonce) = try derive(shared, ephemeral: point, curve: curve)
        do {
            let box = try AES.GCM.SealedBox(
                nonce: nonce, ciphertext: sealed[curve.pointLength..<(sealed.count - Self.tagLength)],
                tag: sealed.suffix(Self.tagLength))
            return Secret(SymmetricKey(data: try AES.GCM.open(box, using: symmetricKey)))
        } catch {
            throw Self.notOpened
        }
    }

    private func derive(
        _ shared: Secret, ephemeral: [UInt8], curve: ECIESCurve
    ) throws -> (key: SymmetricKey, nonce: AES.GCM.Nonce) {
        let length = curve.aesKeyLength + (variableIV ? Self.ivLength : 0)
        let material =
            switch digest {
            case .sha256: X963KDF.bytes(SHA256.self, from: shared, sharedInfo: ephemeral, count: length)
            case .sha384: X963KDF.bytes(SHA384.self, from: shared, sharedInfo: ephemeral, count: length)
            }
        // A zero IV is safe here because the key is fresh for each message.
        let iv = variableIV ? material.suffix(Self.ivLength) : [UInt8](repeating: 0, count: Self.ivLength)[...]
        return (SymmetricKey(data: material.prefix(curve.aesKeyLength)), try AES.GCM.Nonce(data: iv))
    }

    static let notOpened = SecretStoreError(
        .tampered,
        "This was sealed for another key or in another form, or it was changed. Use the key that it was made for, or "
            + "fetch it again.")
}

/// The key derivation function of ANSI X9.63 (SEC 1 §3.6.1).
enum X963KDF {
    static func bytes<Hash: HashFunction>(
        _ hash: Hash.Type, from secret: Secret, sharedInfo: [UInt8], count: Int
    ) -> [UInt8] {
        var material: [UInt8] = []
        var counter: UInt32 = 1
        while material.count < count {
            var state = Hash()
            secret.withUnsafeBytes { state.update(bufferPointer: $0) }
            withUnsafeBytes(of: counter.bigEndian) { state.update(bufferPointer: $0) }
            state.update(data: sharedInfo)
            material.append(contentsOf: state.finalize())
            counter += 1
        }
        return Array(material.prefix(count))
    }
}
