public import AssentAuthorization
import AssentCore
public import AssentJourney
import AssentTokens

/// Calls the resources of a user, and those of a user who is only remembered.
///
/// ```swift
/// let accounts = try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
///
/// try await assent.userClient.implicitlyAuthenticate("ana", scopes: ["greeting"])
/// let greeting = try await assent.userClient.sendImplicitRequest(.get("greeting"))
/// ```
public final class UserClient: Sendable {
    private let calls: ResourceCalls
    private let implicit: ResourceCalls
    private let authenticate: ImplicitAuthentication

    /// Authenticates a remembered user, by id or name, for scopes.
    package typealias ImplicitAuthentication = @Sendable (_ user: String, _ scopes: [String]) async throws -> Void

    /// A client for calls of the kinds `user` and `implicit`.
    package init(
        _ calls: ResourceCalls, implicit: ResourceCalls, authenticating authenticate: @escaping ImplicitAuthentication
    ) {
        self.calls = calls
        self.implicit = implicit
        self.authenticate = authenticate
    }

    /// Authenticates a user who is remembered here, without asking for anything: the key of the user's container signs.
    /// The token is kept in memory, and there is one such user at a time. It works after a sign-out, and not after the
    /// container has ended.
    ///
    /// - Parameters:
    ///   - user: the user's id or name.
    ///   - scopes: what access is asked for, of the scopes that the app has for this.
    /// - Throws: ``ResourceError``: `userNotAuthenticatedImplicitly` when nobody with this name is remembered, or the
    ///   server refuses; `userDeregistered` when the server has signed that the container has ended; `scopeRefused`,
    ///   `deviceDeregistered`; `serverNotReachable` when the server gives no answer.
    public func implicitlyAuthenticate(_ user: String, scopes: [String]) async throws(ResourceError) {
        do {
            try await authenticate(user, scopes)
        } catch {
            throw ResourceError.ofSignIn(error, .implicit)
        }
    }

    /// Sends a request with the token of the user who is implicitly authenticated.
    ///
    /// - Returns: the response, whatever its status.
    /// - Throws: ``ResourceError``: `userNotAuthenticatedImplicitly`, `deviceDeregistered`; `hostRefused`,
    ///   `invalidMethod`, `invalidHeaders`, `invalidRequest` before anything is sent; the transport's.
    public func sendImplicitRequest(_ request: ResourceRequest) async throws(ResourceError) -> ResourceResponse {
        try await implicit.send(request)
    }

    /// The same with a completion, which is called once. What cannot be sent calls it before this returns `nil`.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - completion: is told the response, the error, or both from status 400 on.
    /// - Returns: the task, which can be cancelled.
    @discardableResult
    public func sendImplicitRequest(
        _ request: ResourceRequest, completion: @escaping ResourceCompletion
    ) -> Task<Void, Never>? {
        let calls = implicit
        return calls.start(request, completion: completion) { call async throws(ResourceError) in
            try await calls.send(call)
        }
    }

    /// Sends a request with the user's credential.
    ///
    /// - Returns: the response, whatever its status.
    /// - Throws: ``ResourceError``: `userNotAuthenticated`; `approvalNeeded` when the server wants an approval;
    ///   `hostRefused`, `invalidMethod`, `invalidHeaders`, `invalidRequest` before anything is sent; the transport's.
    public func sendAuthenticatedRequest(_ request: ResourceRequest) async throws(ResourceError) -> ResourceResponse {
        try await calls.send(request)
    }

    /// Sends a request with the user's credential, and asks the user when the server wants an approval. The request is
    /// then sent once more as it was.
    ///
    /// ```swift
    /// let reply = try await assent.userClient.sendAuthenticatedRequest(payment) { approval in
    ///     guard await screen.confirm(approval.display) else { return .decline }
    ///     approval.agree()
    ///     return .next
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - approve: is called with each step of the journey that gets the approval.
    /// - Returns: the response to the last sending.
    /// - Throws: ``ResourceError``, above all `actionCancelled` when the user declined, and `outcomeUnknown`; what
    ///   `approve` throws.
    public func sendAuthenticatedRequest(
        _ request: ResourceRequest, approve: (inout Approval) async throws -> StepAction
    ) async throws -> ResourceResponse {
        try await calls.send(request, approve: approve)
    }

    /// The same with a completion, which is called once. What cannot be sent calls it before this returns `nil`.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - completion: is told the response, the error, or both from status 400 on.
    /// - Returns: the task, which can be cancelled.
    @discardableResult
    public func sendAuthenticatedRequest(
        _ request: ResourceRequest, completion: @escaping ResourceCompletion
    ) -> Task<Void, Never>? {
        let calls = calls
        return calls.start(request, completion: completion) { call async throws(ResourceError) in
            try await calls.send(call)
        }
    }
}
