/// What an online key of the server signs.
package protocol ServerContent: SignedContent {
    /// `iss`.
    var issuer: String { get }

    /// `iat`, where there is one.
    var madeAt: Int? { get }
}

extension ServerContent where Self: ReplyContent {
    /// `iss`.
    package var issuer: String { head.issuer }

    /// `iat`.
    package var madeAt: Int? { head.issuedAt }
}

extension Invite: ServerContent {
    /// `iat`.
    package var madeAt: Int? { issuedAt }
}

extension Ticket: ServerContent {
    /// A transaction's id does not say when it was made.
    package var madeAt: Int? { nil }
}

extension EnrolmentRecord: ServerContent {
    /// `iat`.
    package var madeAt: Int? { issuedAt }
}

extension TransactionDocument: ServerContent {
    /// `iat`.
    package var madeAt: Int? { issuedAt }
}

extension Receipt: ServerContent {
    /// `iat`.
    package var madeAt: Int? { decidedAt }
}
