public import AssentCore

/// What guards a vault: it seals the vault's random data key and opens it again.
///
/// The vault keeps what ``seal(_:context:)`` returns in its header and does not look into it, so a provider's parameters
/// (a salt, a handle) belong in there too.
public protocol VaultKeyProvider: Sendable {
    /// Which kind of provider this is, as a stable name of at most 64 bytes. A vault opens only with the kind that sealed it.
    var kind: String { get }

    /// What keeps the sealing key. It is written into the vault, and a vault never opens with another protection.
    var protection: KeyProtection { get }

    /// Seals `dataKey` (32 bytes) for a new vault; makes the sealing key when this is its first use.
    ///
    /// Nobody without the sealing key can make a result that ``unseal(_:context:)`` accepts, for this or any other context.
    /// - Throws: ``AssentCore/SecretStoreError`` with code `keyUnavailable`.
    func seal(_ dataKey: Secret, context: [UInt8]) async throws -> [UInt8]

    /// Opens what ``seal(_:context:)`` made for the same `context`. It never makes a new sealing key.
    ///
    /// - Throws: ``AssentCore/SecretStoreError`` with code `wrongKey` when another key sealed it, `tampered` when the
    ///   blob or the context was changed, `keyUnavailable` when the sealing key cannot be used now.
    func unseal(_ sealed: [UInt8], context: [UInt8]) async throws -> Secret
}
