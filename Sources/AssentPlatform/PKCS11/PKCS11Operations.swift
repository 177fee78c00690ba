#if PKCS11 && os(Linux)
import AssentCore
import CP11Kit
import Crypto
import Foundation

extension PKCS11Session {
    /// ECDSA over a digest: `r ‖ s`.
    func sign(_ digest: [UInt8], key: CK_OBJECT_HANDLE, contextPIN: Secret?) throws -> [UInt8] {
        var mechanism = CK_MECHANISM(mechanism: CKM_ECDSA, pParameter: nil, ulParameterLen: 0)
        try module.check("signing", try module.function(\.C_SignInit)(handle, &mechanism, key))
        if let contextPIN { try login(contextPIN, as: CKU_CONTEXT_SPECIFIC) }
        var digest = digest
        var signature = [UInt8](repeating: 0, count: 128)
        var length = CK_ULONG(signature.count)
        let sign = try module.function(\.C_Sign)
        try module.check("signing", sign(handle, &digest, CK_ULONG(digest.count), &signature, &length))
        guard length == 64 else { throw PKCS11Failure.nonsense("a P-256 signature of \(length) bytes") }
        return Array(signature.prefix(64))
    }

    /// The x coordinate of the shared point.
    func agree(_ peer: [UInt8], key: CK_OBJECT_HANDLE) throws -> Secret {
        do {
            return try derive(peer, key: key)
        } catch let failure as PKCS11Failure
            where [CKR_MECHANISM_PARAM_INVALID, CKR_ARGUMENTS_BAD].contains(failure.code)
        {
            // Some modules want the point as a DER OCTET STRING (PKCS #11 v2.40 §2.3.7 allows both).
            return try derive([0x04, UInt8(peer.count)] + peer, key: key)
        }
    }

    private func derive(_ point: [UInt8], key: CK_OBJECT_HANDLE) throws -> Secret {
        let secret = [
            PKCS11Attribute(CKA_CLASS, number: CKO_SECRET_KEY),
            PKCS11Attribute(CKA_KEY_TYPE, number: CKK_GENERIC_SECRET),
            PKCS11Attribute(CKA_TOKEN, false), PKCS11Attribute(CKA_SENSITIVE, false),
            PKCS11Attribute(CKA_EXTRACTABLE, true), PKCS11Attribute(CKA_VALUE_LEN, number: 32),
        ]
        var derived: CK_OBJECT_HANDLE = 0
        var point = point
        try point.withUnsafeMutableBufferPointer { point in
            var parameters = CK_ECDH1_DERIVE_PARAMS(
                kdf: ck_ec_kdf_t(CKD_NULL), ulSharedDataLen: 0, pSharedData: nil,
                ulPublicDataLen: CK_ULONG(point.count), pPublicData: point.baseAddress)
            try withUnsafeMutablePointer(to: &parameters) { parameters in
                var mechanism = CK_MECHANISM(
                    mechanism: CKM_ECDH1_DERIVE, pParameter: parameters,
                    ulParameterLen: CK_ULONG(MemoryLayout<CK_ECDH1_DERIVE_PARAMS>.size))
                try secret.withTemplate { template, count in
                    try module.check(
                        "agreeing on a secret",
                        try module.function(\.C_DeriveKey)(handle, &mechanism, key, template, count, &derived))
                }
            }
        }
        defer { try? destroy(derived) }
        guard let bytes = try value(CKA_VALUE, of: derived), bytes.count == 32 else {
            throw PKCS11Failure.nonsense("a shared secret that is not 32 bytes long")
        }
        return Secret(bytes: bytes)
    }

    /// The public point of the key pair with this `CKA_ID`.
    func publicPoint(id: [UInt8], privateKey: CK_OBJECT_HANDLE) throws -> [UInt8] {
        let publicKeys = try find([
            PKCS11Attribute(CKA_CLASS, number: CKO_PUBLIC_KEY), PKCS11Attribute(CKA_KEY_TYPE, number: CKK_EC),
            PKCS11Attribute(CKA_ID, id),
        ])
        for object in publicKeys + [privateKey] {
            guard let bytes = try value(CKA_EC_POINT, of: object) else { continue }
            // CKA_EC_POINT is the DER OCTET STRING of the point; some old modules leave the two bytes out.
            let point = bytes.count == 67 && bytes.starts(with: [0x04, 65]) ? Array(bytes.dropFirst(2)) : bytes
            if point.count == 65, (try? P256.Signing.PublicKey(x963Representation: point)) != nil { return point }
        }
        throw KeyProviderError(
            .tampered,
            "The token has no usable P-256 public key beside this private key. Remove the key, or restore its public part."
        )
    }

    /// Proves that the private key belongs to `point`: the public part lies in the token where anybody could put
    /// another.
    func provePossession(
        _ point: [UInt8], key: CK_OBJECT_HANDLE, use: PKCS11KeyUse, contextPIN: Secret?
    ) throws {
        let isProven: Bool
        switch use {
        case .signing:
            var challenge = SystemRandom().bytes(32)
            challenge += Array("assent key check".utf8)
            let digest = SHA256.hash(data: challenge)
            let raw = try sign(Array(digest), key: key, contextPIN: contextPIN)
            isProven = try P256.Signing.PublicKey(x963Representation: point)
                .isValidSignature(P256.Signing.ECDSASignature(rawRepresentation: raw), for: digest)
        case .agreement:
            let other = P256.KeyAgreement.PrivateKey()
            let expected = try other.sharedSecretFromKeyAgreement(
                with: P256.KeyAgreement.PublicKey(x963Representation: point))
            let agreed = try agree(Array(other.publicKey.x963Representation), key: key)
            isProven = expected.withUnsafeBytes { Secret(bytes: $0) } == agreed
        }
        guard isProven else {
            throw KeyProviderError(
                .tampered,
                "The token's public key does not belong to its private key: somebody exchanged one. Remove the key; do "
                    + "not use what it protected without asking who did.")
        }
    }
}
#endif
