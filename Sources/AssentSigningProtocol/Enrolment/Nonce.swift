/// The server's nonce, after the device's commitment, and whom the device is enrolled for.
package struct NonceReply: ReplyContent {
    package static let type = MessageType.nonce
    package let head: SigningReplyHead
    package let nonceS: SigningNonce
    /// The user's id, which never changes.
    package let sub: String
    package let user: String

    package init(head: SigningReplyHead, nonceS: SigningNonce, sub: String, user: String) {
        (self.head, self.nonceS, self.sub, self.user) = (head, nonceS, sub, user)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member(embedded: \.head)
        Member("nonceS", \.nonceS)
        Member("sub", \.sub, .ascii(1...64))
        Member("user", \.user, .shown(1...64))
    }
}
