package import Crypto

/// Derives the keys of messages from the key of their direction (docs/payload-encryption.md, "Frames").
package struct MessageKeys: Sendable {
    /// It has taken the direction's key in already, which is two of the five blocks that it hashes for a message.
    private let code: HMAC<SHA256>

    /// The keys of a session's requests, or of its replies.
    package init(_ direction: SymmetricKey) { code = HMAC<SHA256>(key: direction) }

    /// HKDF-Expand of 32 bytes. They are one block, and so one HMAC of `info` and the block's number (RFC 5869 §2.3):
    /// the function for any number of blocks takes the key in anew for each message.
    func key(_ info: [UInt8]) -> SymmetricKey {
        var code = code
        code.update(data: info + [1])
        return SymmetricKey(data: code.finalize())
    }
}
