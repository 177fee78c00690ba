package import AssentCore

/// What a node sees and may change.
package struct NodeContext: Sendable {
    /// What the journey carries from page to page.
    package var progress: JourneyProgress

    /// What the user has answered to this node, one for each callback that it asked; `nil` when it has not asked yet.
    package var answers: [CallbackResponse]?

    /// The password that was collected. It lives as long as one request: the node that checks it must come before the
    /// next page.
    package var password: Secret?

    /// The realm.
    package let realm: String

    /// What the user is asked to approve, in a transaction.
    package let approval: PendingApproval?

    /// A header field of the request, by its name in any case.
    package let header: @Sendable (String) -> String?

    /// Whether this is the journey's first request: the only one whose header fields a node may read values from.
    package let isFirstRequest: Bool

    /// The client's address, where the server knows it.
    package let clientAddress: String?

    /// What nodes may use.
    package let services: JourneyServices
}

extension NodeContext {
    /// The user to be checked: the one named in this journey, or the one who is already known.
    package func claimedUser() async throws -> User? {
        if let username = progress.subject.username {
            return try await services.users.find(username: username, realm: realm)
        }
        guard let id = progress.subject.userID else { return nil }
        return try await services.users.find(id: id)
    }

    /// Whether the journey knows, by a check or by its session, that it is about that user. Somebody who is signed in
    /// may type the name of another user.
    func knows(_ user: User) -> Bool { progress.subject.userID == user.id }
}
