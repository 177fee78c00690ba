/// What an online key of the server signs.
package protocol ServerContent: SignedContent {
    var issuer: String { get }
    /// `nil` for a message that does not say when it was made.
    var madeAt: Int? { get }
}

extension ServerContent where Self: ReplyContent {
    package var issuer: String { head.issuer }
    package var madeAt: Int? { head.issuedAt }
}

extension Invite: ServerContent { package var madeAt: Int? { issuedAt } }
extension Ticket: ServerContent { package var madeAt: Int? { nil } }
extension EnrolmentRecord: ServerContent { package var madeAt: Int? { issuedAt } }
extension TransactionDocument: ServerContent { package var madeAt: Int? { issuedAt } }
extension Receipt: ServerContent { package var madeAt: Int? { decidedAt } }
