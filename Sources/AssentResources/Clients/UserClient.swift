public import AssentAuthorization
import AssentCore
public import AssentJourney
package import AssentTokens

/// Calls the resources of a user.
///
/// ```swift
/// let accounts = try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
/// ```
public final class UserClient: Sendable {
    private let calls: ResourceCalls
    let tokens: TokenManager

    /// A client for calls of the kind `user`, whose tokens are these.
    package init(_ calls: ResourceCalls, tokens: TokenManager) {
        self.calls = calls
        self.tokens = tokens
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
    /// - Throws: ``ResourceError``, as ``sendAuthenticatedRequest(_:)-(ResourceRequest)``; `cannotCreateFile`,
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
    /// - Throws: ``ResourceError``, and what `approve` throws.
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
