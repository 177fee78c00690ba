public import AssentCore

/// What the vendors' iOS SDKs sealed with their Secure Enclave key: the way in, and the way back.
///
/// Both the ForgeRock SDK (`SecuredKey`, key tag `com.forgerock.ios.securedKey.identifier`) and the Ping SDK
/// (`SecuredKeyEncryptor`, key tag `com.pingidentity.securedKey.identifier`) seal with
/// ``ECIES/cofactorVariableIVX963SHA256AESGCM``; older versions of the former did with
/// ``ECIES/cofactorX963SHA256AESGCM``. The key is bound to the device and to the app that made it, so importing happens
/// there, once, with a handle of that key.
///
/// Two things those SDKs do are not done here: nothing is stored in plaintext when sealing fails, and what cannot be
/// opened is an error, never returned as if it were the value.
public enum VendorSealed {
    /// Opens a value of one of these SDKs: in the form that they write now, or else in the old one.
    ///
    /// - Returns: the value as the SDK encoded it: for the Ping SDK JSON (a session is `{"value", "successUrl",
    ///   "realm"}`).
    /// - Throws: ``/AssentCore/SecretStoreError`` with code `tampered` when it is neither, for example a value that an
    ///   SDK without a key stored in plaintext; `invalidInput` when it is too long; and what `key` throws.
    public static func open(_ sealed: [UInt8], with key: any KeyAgreementKey) async throws -> Secret {
        do {
            return try await ECIES.cofactorVariableIVX963SHA256AESGCM.open(sealed, with: key)
        } catch let error as SecretStoreError where error == ECIES.notOpened {
            return try await ECIES.cofactorX963SHA256AESGCM.open(sealed, with: key)
        }
    }

    /// Seals a value so that these SDKs can read it, in the form that they write now.
    ///
    /// - Parameters:
    ///   - value: encoded as the SDK expects it; this does not look into it.
    ///   - publicPoint: the SDK's key as an uncompressed point.
    /// - Returns: what the SDK stores, before any encoding.
    /// - Throws: ``/AssentCore/SecretStoreError`` with code `invalidInput`.
    public static func seal(_ value: Secret, to publicPoint: [UInt8]) throws -> [UInt8] {
        try ECIES.cofactorVariableIVX963SHA256AESGCM.seal(value, to: publicPoint)
    }
}
