package import AssentCore

/// The server's nonce, after the device's commitment, and whom the device is enrolled for.
package struct NonceReply: ReplyContent {
    /// `tsp-nonce+jwt`.
    package static let type = MessageType.nonce

    /// What every reply has.
    package let head: SigningReplyHead
    /// The server's nonce.
    package let nonceS: SigningNonce
    /// The user's id, which never changes.
    package let sub: String
    /// The user's name.
    package let user: String

    /// The content with these members; the reader checks their bounds.
    package init(
        head: SigningReplyHead, nonceS: SigningNonce, sub: String, user: String
    ) {
        self.head = head
        self.nonceS = nonceS
        self.sub = sub
        self.user = user
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        head = try SigningReplyHead(reading: &reader)
        nonceS = try reader.fixed("nonceS")
        sub = try reader.ascii("sub", 1...64)
        user = try reader.shown("user", 1...64)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        head.with([
            "nonceS": nonceS.json, "sub": .string(sub), "user": .string(user),
        ])
    }
}
