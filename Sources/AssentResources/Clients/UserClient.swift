public import AssentAuthorization
import AssentCore
public import AssentJourney
package import AssentTokens

/// Calls the resources of a user, and those of a user who is only remembered.
///
/// ```swift
/// let accounts = try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
///
/// try await assent.userClient.implicitlyAuthenticate("ana", scopes: ["profile"])
/// let greeting = try await assent.userClient.sendImplicitRequest(.get("greeting"))
/// ```
public final class UserClient: Sendable {
    private let calls: ResourceCalls
    private let implicit: ResourceCalls
    private let authenticate: ImplicitAuthentication
    let link: LinkMaking

    /// Authenticates a remembered user, by id or name, for scopes.
    package typealias ImplicitAuthentication = @Sendable (_ user: String, _ scopes: [String]) async throws -> Void

    /// Gets a link that signs a browser in as the current user.
    package typealias LinkMaking = @Sendable (_ target: String) async throws -> WebLink

    /// A client for calls of the kinds `user` and `implicit`.
    package init(
        _ calls: ResourceCalls, implicit: ResourceCalls, authenticating authenticate: @escaping ImplicitAuthentication,
        linking link: @escaping LinkMaking
    ) {
        self.calls = calls
        self.implicit = implicit
        self.authenticate = authenticate
        self.link = link
    }

    /// Authenticates a user who is remembered here, without asking for anything: the key of the user's container signs.
    /// The token is kept in memory, and there is one such user at a time. It works after a sign-out, and not after the
    /// container has ended.
    ///
    /// - Parameters:
    ///   - user: the user's id or name.
    ///   - scopes: what access is asked for, of the scopes that the app has for this.
    /// - Throws: `ResourceError`: `userNotAuthenticatedImplicitly` when nobody with this name is remembered, or the
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
    /// - Throws: `ResourceError`: `userNotAuthenticatedImplicitly`, `deviceDeregistered`; `hostRefused`,
    ///   `invalidMethod`, `invalidHeaders`, `invalidRequest` before anything is sent; the transport's.
    public func sendImplicitRequest(_ request: ResourceRequest) async throws(ResourceError) -> ResourceResponse {
        try await implicit.send(request)
    }

    /// The same with a completion, which is called once. What cannot be sent calls it before this returns `nil`.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - completion: is told the response, the error, or both from status 400 on.
    /// - Returns: the task, which can be suspended and cancelled.
    @discardableResult
    public func sendImplicitRequest(
        _ request: ResourceRequest, completion: @escaping ResourceCompletion
    ) -> NetworkTask? {
        implicit.start(request, completion: completion)
    }

    /// Sends a request with the token of the user who is implicitly authenticated, and writes the reply's content to a
    /// file.
    ///
    /// - Parameters:
    ///   - download: the request, and where its content goes.
    ///   - progress: is told how much has come.
    /// - Returns: the response, whatever its status; its content is in ``ResourceResponse/file`` if that is 2xx.
    /// - Throws: `ResourceError`, as ``sendImplicitRequest(_:)-(ResourceRequest)``; `cannotCreateFile`,
    ///   `cannotWriteToFile`.
    public func sendImplicitRequest(
        _ download: ResourceDownload, progress: @escaping @Sendable (NetworkProgress) -> Void = { _ in }
    ) async throws(ResourceError) -> ResourceResponse {
        try await implicit.send(download, progress: progress)
    }

    /// The same with a completion, which is called once. What cannot be sent calls it before this returns `nil`.
    ///
    /// - Parameters:
    ///   - download: the request, and where its content goes.
    ///   - completion: is told the response, the error, or both from status 400 on.
    /// - Returns: the task, which can be suspended and cancelled.
    @discardableResult
    public func sendImplicitRequest(
        _ download: ResourceDownload, completion: @escaping ResourceCompletion
    ) -> NetworkTask? {
        implicit.start(download, completion: completion)
    }

    /// Sends a request with the user's credential.
    ///
    /// - Returns: the response, whatever its status.
    /// - Throws: `ResourceError`: `userNotAuthenticated`; `approvalNeeded` when the server wants an approval;
    ///   `hostRefused`, `invalidMethod`, `invalidHeaders`, `invalidRequest` before anything is sent; the transport's.
    public func sendAuthenticatedRequest(_ request: ResourceRequest) async throws(ResourceError) -> ResourceResponse {
        try await calls.send(request)
    }

    /// Sends a request with the user's credential, and asks the user when the server wants an approval. The request is
    /// then sent once more as it was.
    ///
    /// ```swift
    /// let reply = try await assent.userClient.sendAuthenticatedRequest(payment) { approval in
    ///     if approval.isFirstStep {
    ///         guard await screen.confirm(approval.display) else { return .decline }
    ///     }
    ///     if let waiting = approval.waiting { await screen.show(waiting.text) }
    ///     approval.agree()
    ///     return .next
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - approve: is called with each step of the journey that gets the approval.
    /// - Returns: the response to the last sending.
    /// - Throws: `ResourceError`, above all `actionCancelled` when the user declined, and `outcomeUnknown`; what
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
    /// - Returns: the task, which can be suspended and cancelled.
    @discardableResult
    public func sendAuthenticatedRequest(
        _ request: ResourceRequest, completion: @escaping ResourceCompletion
    ) -> NetworkTask? {
        calls.start(request, completion: completion)
    }

    /// Sends a request with the user's credential, and writes the reply's content to a file.
    ///
    /// - Returns: the response, whatever its status; its content is in ``ResourceResponse/file`` if that is 2xx.
    /// - Throws: `ResourceError`, as ``sendAuthenticatedRequest(_:)-(ResourceRequest)``; `cannotCreateFile`,
    ///   `cannotWriteToFile`.
    public func sendAuthenticatedRequest(
        _ download: ResourceDownload
    ) async throws(ResourceError) -> ResourceResponse {
        try await calls.send(download)
    }

    /// The same, and the user is asked when the server wants an approval.
    ///
    /// - Parameters:
    ///   - download: the request, and where its content goes.
    ///   - progress: is told how much has come.
    ///   - approve: as for ``sendAuthenticatedRequest(_:approve:)-(ResourceRequest,_)``.
    /// - Returns: the response, whatever its status; its content is in ``ResourceResponse/file`` if that is 2xx.
    /// - Throws: `ResourceError`, and what `approve` throws.
    public func sendAuthenticatedRequest(
        _ download: ResourceDownload, progress: (NetworkProgress) -> Void = { _ in },
        approve: (inout Approval) async throws -> StepAction
    ) async throws -> ResourceResponse {
        try await calls.send(download, progress: progress, approve: approve)
    }

    /// The same with a completion, which is called once. What cannot be sent calls it before this returns `nil`.
    ///
    /// - Parameters:
    ///   - download: the request, and where its content goes.
    ///   - completion: is told the response, the error, or both from status 400 on.
    /// - Returns: the task, which can be suspended and cancelled.
    @discardableResult
    public func sendAuthenticatedRequest(
        _ download: ResourceDownload, completion: @escaping ResourceCompletion
    ) -> NetworkTask? {
        calls.start(download, completion: completion)
    }
}
