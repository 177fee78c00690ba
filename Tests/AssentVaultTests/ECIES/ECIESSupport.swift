import AssentCore
import Crypto
import Foundation
import TestSupport
import Testing

@testable import AssentVault

/// A key in memory that agrees on secrets.
struct TestAgreementKey: KeyAgreementKey {
    private enum Key {
        case p256(P256.KeyAgreement.PrivateKey)
        case p384(P384.KeyAgreement.PrivateKey)
    }

    private let key: Key
    /// How often it was used.
    let uses = Locked(0)

    static func p256() -> TestAgreementKey { TestAgreementKey(key: .p256(P256.KeyAgreement.PrivateKey())) }
    static func p384() -> TestAgreementKey { TestAgreementKey(key: .p384(P384.KeyAgreement.PrivateKey())) }

    private init(key: Key) { self.key = key }

    init(pkcs8 der: [UInt8]) throws {
        if let p256 = try? P256.KeyAgreement.PrivateKey(derRepresentation: der) {
            key = .p256(p256)
        } else {
            key = .p384(try P384.KeyAgreement.PrivateKey(derRepresentation: der))
        }
    }

    var pkcs8: [UInt8] {
        switch key {
        case .p256(let key): Array(key.derRepresentation)
        case .p384(let key): Array(key.derRepresentation)
        }
    }

    var publicPoint: [UInt8] {
        switch key {
        case .p256(let key): Array(key.publicKey.x963Representation)
        case .p384(let key): Array(key.publicKey.x963Representation)
        }
    }

    func sharedSecret(with peer: [UInt8]) async throws -> Secret {
        uses.withLock { $0 += 1 }
        switch key {
        case .p256(let key):
            return try key.sharedSecretFromKeyAgreement(with: .init(x963Representation: peer))
                .withUnsafeBytes { Secret(bytes: $0) }
        case .p384(let key):
            return try key.sharedSecretFromKeyAgreement(with: .init(x963Representation: peer))
                .withUnsafeBytes { Secret(bytes: $0) }
        }
    }
}

/// ECIES by Debian's python3-cryptography, which shares no code with ours but OpenSSL's idea of a curve.
enum PythonECIES {
    static let interpreter = "/usr/bin/python3"

    /// In CI the program must be there: a missing one fails the tests instead of skipping them.
    static let mustRun =
        ProcessInfo.processInfo.environment["CI"] != nil || (try? run("import cryptography", [])) != nil

    private static let program = """
        import sys
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.x963kdf import X963KDF

        what, form, digest, key, message = sys.argv[1:]
        key, message = bytes.fromhex(key), bytes.fromhex(message)
        digest = {'sha256': hashes.SHA256, 'sha384': hashes.SHA384}[digest]()

        def derive(shared, point, size):
            length = 16 if size == 256 else 32
            material = X963KDF(digest, length + (16 if form == 'variable' else 0), point).derive(shared)
            return AESGCM(material[:length]), material[length:] if form == 'variable' else bytes(16)

        def encoded(key):
            return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)

        if what == 'seal':
            curve = ec.SECP256R1() if len(key) == 65 else ec.SECP384R1()
            recipient = ec.EllipticCurvePublicKey.from_encoded_point(curve, key)
            ephemeral = ec.generate_private_key(curve)
            point = encoded(ephemeral.public_key())
            cipher, iv = derive(ephemeral.exchange(ec.ECDH(), recipient), point, curve.key_size)
            sys.stdout.write((point + cipher.encrypt(iv, message, None)).hex())
        else:
            own = serialization.load_der_private_key(key, None)
            length = 1 + 2 * (own.curve.key_size // 8)
            point = message[:length]
            peer = ec.EllipticCurvePublicKey.from_encoded_point(own.curve, point)
            cipher, iv = derive(own.exchange(ec.ECDH(), peer), point, own.curve.key_size)
            sys.stdout.write(cipher.decrypt(iv, message[length:], None).hex())
        """

    static func seal(_ message: [UInt8], to point: [UInt8], _ form: ECIESForm) throws -> [UInt8] {
        try bytes(run(program, ["seal", form.iv, form.digest, Hex.encode(point), Hex.encode(message)]))
    }

    static func open(_ sealed: [UInt8], pkcs8: [UInt8], _ form: ECIESForm) throws -> [UInt8] {
        try bytes(run(program, ["open", form.iv, form.digest, Hex.encode(pkcs8), Hex.encode(sealed)]))
    }

    private static func bytes(_ hex: String) throws -> [UInt8] { try #require(Hex.decode(hex)) }

    private static func run(_ program: String, _ arguments: [String]) throws -> String {
        let done = try FinishedProcess.run(interpreter, ["-c", program] + arguments)
        try #require(done.status == 0, "\(done.complaints)")
        return done.text
    }
}

/// The four forms by name.
struct ECIESForm: Sendable, CustomTestStringConvertible {
    let iv: String
    let digest: String
    let scheme: ECIES

    var testDescription: String { "\(iv) IV, \(digest)" }

    static let all = [
        ECIESForm(iv: "zero", digest: "sha256", scheme: .cofactorX963SHA256AESGCM),
        ECIESForm(iv: "variable", digest: "sha256", scheme: .cofactorVariableIVX963SHA256AESGCM),
        ECIESForm(iv: "zero", digest: "sha384", scheme: .cofactorX963SHA384AESGCM),
        ECIESForm(iv: "variable", digest: "sha384", scheme: .cofactorVariableIVX963SHA384AESGCM),
    ]
}
