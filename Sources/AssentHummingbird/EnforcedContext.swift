public import AssentEnforcement
import HTTPTypes
public import Hummingbird

/// A request context that carries what ``PolicyMiddleware`` found out about a request.
public protocol EnforcedContext: RequestContext {
    /// What the policies allowed; `nil` where no middleware has asked them.
    var access: EnforcedAccess? { get set }
}

extension EnforcedContext {
    /// What the policies allowed.
    ///
    /// - Throws: An error with status 500 on a route that no ``PolicyMiddleware`` protects: nobody was asked there.
    public func allowed() throws -> EnforcedAccess {
        guard let access else { throw HTTPError(.internalServerError) }
        return access
    }
}

/// A request context of a service that needs no more in it.
public struct BasicEnforcedContext: EnforcedContext {
    /// What Hummingbird keeps.
    public var coreContext: CoreRequestContextStorage

    /// What the policies allowed.
    public var access: EnforcedAccess?

    /// A context.
    public init(source: Source) { coreContext = .init(source: source) }
}

/// What a handler may know of a request that the policies allowed.
public struct EnforcedAccess: Hashable, Sendable {
    /// Whose request it is.
    public let user: EnforcedUser

    /// What the policies say of the user, or what the server knows of them where it was asked, by name.
    public let claims: [String: [String]]

    /// The transaction that was used up for this request; `nil` when none was needed. It names the request once and
    /// for all: as a key against carrying it out twice.
    public let transactionID: String?

    /// The scopes of the caller's access token; `nil` for a caller with a session, whom no scope limits.
    public let scopes: [String]?

    /// An access.
    public init(
        user: EnforcedUser, claims: [String: [String]] = [:], transactionID: String? = nil, scopes: [String]? = nil
    ) {
        self.user = user
        self.claims = claims
        self.transactionID = transactionID
        self.scopes = scopes
    }
}
