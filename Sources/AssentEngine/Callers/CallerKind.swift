import AssentCore

/// For whom a caller with valid credentials calls.
package enum CallerKind: String, Sendable, Hashable, CaseIterable {
    /// A user who has signed in.
    case user
    /// A user who has signed in at an app that keeps nothing of it.
    case stateless
    /// A user who is only remembered.
    case implicit
    /// An installation of an app, for itself.
    case device
    /// A client of the file, for itself.
    case client

    /// The kind of the caller who has a session.
    package init(_ kind: SessionKind) {
        switch kind {
        case .user: self = .user
        case .implicit: self = .implicit
        case .stateless: self = .stateless
        }
    }
}

extension AccessGrant {
    /// For whom it is.
    package var kind: CallerKind { CallerKind(owner: owner, isOfInstance: app != nil) }
}

extension GrantRecord {
    /// For whom its tokens are.
    func kind(isOfInstance: Bool) -> CallerKind { CallerKind(owner: owner, isOfInstance: isOfInstance) }
}

extension CallerKind {
    /// For whom a grant is. One that outlives its session is a signed-in user's: no other has the scope for that.
    fileprivate init(owner: ResourceOwner?, isOfInstance: Bool) {
        guard let owner else {
            self = isOfInstance ? .device : .client
            return
        }
        self = owner.session.map { CallerKind($0.kind) } ?? .user
    }
}

extension Caller {
    /// For whom the caller calls; `nil` for an unknown caller.
    package var kind: CallerKind? {
        switch self {
        case .session(let session, _, _): CallerKind(session.kind)
        case .accessToken(let grant, _): grant.kind
        case .anonymous, .foreignSession, .refusedToken, .refusedKind: nil
        }
    }

    /// The client that calls for itself; `nil` for every other caller.
    package var clientItself: ClientItself? {
        guard case .accessToken(let grant, _) = self, grant.owner == nil else { return nil }
        return grant.app.map(ClientItself.installation(ofApp:)) ?? .client(grant.clientID)
    }

    /// The same caller where the door is open for them, else an anonymous one: for doors that are open to all.
    package func through(_ door: Door) -> Caller {
        guard let kind, !door.admits(kind) else { return self }
        return .anonymous
    }
}

/// A client that calls for itself, as policies know it.
package enum ClientItself: Sendable, Hashable {
    /// An installation of this app.
    case installation(ofApp: String)
    /// The client of this id in the file.
    case client(String)
}
