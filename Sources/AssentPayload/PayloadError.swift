/// Why something of payload encryption is not used (docs/payload-encryption.md). The words are for our own log: a peer
/// is told only what the page says.
package enum PayloadError: Error, Hashable, Sendable {
    /// A public key does not have 32 bytes, or is of small order.
    case badKey
    /// A handshake is not what the page says.
    case malformedHandshake(String)
    /// The server has not shown that it has the key that the handshake named.
    case notConfirmed
    /// The bytes are not a frame of this session, direction and request.
    case foreignFrame
    /// A chunk's head is not possible, or something stands behind the last chunk.
    case malformedFrame
    /// A chunk was changed, or was sealed for something else.
    case damagedFrame
    /// The end is missing.
    case truncated
    /// There were as many chunks as a message may have.
    case tooLong
    /// A content is not Binary HTTP as the page has it.
    case malformedContent(String)
}
