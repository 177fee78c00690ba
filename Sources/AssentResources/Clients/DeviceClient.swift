public import AssentAuthorization
import AssentCore
package import AssentTokens

/// Calls the resources of the installation, and of nobody.
///
/// ```swift
/// try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
/// let details = try await assent.deviceClient.sendRequest(.get("app-info"))
/// let status = try await assent.deviceClient.sendUnauthenticatedRequest(.get("status"))
/// ```
public final class DeviceClient: Sendable {
    private let device: ResourceCalls
    private let nobody: ResourceCalls
    private let tokens: DeviceTokens

    /// A client for calls of the kinds `device` and `nobody`.
    package init(device: ResourceCalls, nobody: ResourceCalls, tokens: DeviceTokens) {
        self.device = device
        self.nobody = nobody
        self.tokens = tokens
    }

    /// Gets the installation's own token, which is kept in memory. An installation that is to register does so first.
    ///
    /// - Parameter scopes: what access is asked for: scopes that need no user.
    /// - Throws: `ResourceError`: `scopeRefused`, `deviceRegistrationFailure`, `deviceDeregistered`,
    ///   `deviceNotAuthenticated`; `serverNotReachable` when the server gives no answer.
    public func authenticateDevice(scopes: [String]) async throws(ResourceError) {
        do {
            try await tokens.authenticate(scopes: scopes)
        } catch {
            throw ResourceError.ofSignIn(error, .device)
        }
    }

    /// Sends a request with the installation's own token.
    ///
    /// - Returns: the response, whatever its status.
    /// - Throws: `ResourceError`: `deviceNotAuthenticated`, `deviceDeregistered`; `hostRefused`, `invalidMethod`,
    ///   `invalidHeaders`, `invalidRequest` before anything is sent; the transport's.
    public func sendRequest(_ request: ResourceRequest) async throws(ResourceError) -> ResourceResponse {
        try await device.send(request)
    }

    /// The same with a completion, which is called once. What cannot be sent calls it before this returns `nil`.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - completion: is told the response, the error, or both from status 400 on.
    /// - Returns: the task, which can be suspended and cancelled.
    @discardableResult
    public func sendRequest(
        _ request: ResourceRequest, completion: @escaping ResourceCompletion
    ) -> NetworkTask? {
        device.start(request, completion: completion)
    }

    /// Sends a request with the installation's own token, and writes the reply's content to a file.
    ///
    /// - Parameters:
    ///   - download: the request, and where its content goes.
    ///   - progress: is told how much has come.
    /// - Returns: the response, whatever its status; its content is in ``ResourceResponse/file`` if that is 2xx.
    /// - Throws: `ResourceError`, as ``sendRequest(_:)-(ResourceRequest)``; `cannotCreateFile`, `cannotWriteToFile`.
    public func sendRequest(
        _ download: ResourceDownload, progress: @escaping @Sendable (NetworkProgress) -> Void = { _ in }
    ) async throws(ResourceError) -> ResourceResponse {
        try await device.send(download, progress: progress)
    }

    /// The same with a completion, which is called once. What cannot be sent calls it before this returns `nil`.
    ///
    /// - Parameters:
    ///   - download: the request, and where its content goes.
    ///   - completion: is told the response, the error, or both from status 400 on.
    /// - Returns: the task, which can be suspended and cancelled.
    @discardableResult
    public func sendRequest(
        _ download: ResourceDownload, completion: @escaping ResourceCompletion
    ) -> NetworkTask? {
        device.start(download, completion: completion)
    }

    /// Sends a request without any credential. The host is pinned as for every other kind.
    ///
    /// - Returns: the response, whatever its status.
    /// - Throws: `ResourceError`, as ``sendRequest(_:)-(ResourceRequest)``, but nothing about tokens.
    public func sendUnauthenticatedRequest(
        _ request: ResourceRequest
    ) async throws(ResourceError) -> ResourceResponse {
        try await nobody.send(request)
    }

    /// The same with a completion, which is called once. What cannot be sent calls it before this returns `nil`.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - completion: is told the response, the error, or both from status 400 on.
    /// - Returns: the task, which can be suspended and cancelled.
    @discardableResult
    public func sendUnauthenticatedRequest(
        _ request: ResourceRequest, completion: @escaping ResourceCompletion
    ) -> NetworkTask? {
        nobody.start(request, completion: completion)
    }

    /// Sends a request without any credential, and writes the reply's content to a file.
    ///
    /// - Parameters:
    ///   - download: the request, and where its content goes.
    ///   - progress: is told how much has come.
    /// - Returns: the response, whatever its status; its content is in ``ResourceResponse/file`` if that is 2xx.
    /// - Throws: `ResourceError`, as ``sendUnauthenticatedRequest(_:)-(ResourceRequest)``; `cannotCreateFile`,
    ///   `cannotWriteToFile`.
    public func sendUnauthenticatedRequest(
        _ download: ResourceDownload, progress: @escaping @Sendable (NetworkProgress) -> Void = { _ in }
    ) async throws(ResourceError) -> ResourceResponse {
        try await nobody.send(download, progress: progress)
    }

    /// The same with a completion, which is called once. What cannot be sent calls it before this returns `nil`.
    ///
    /// - Parameters:
    ///   - download: the request, and where its content goes.
    ///   - completion: is told the response, the error, or both from status 400 on.
    /// - Returns: the task, which can be suspended and cancelled.
    @discardableResult
    public func sendUnauthenticatedRequest(
        _ download: ResourceDownload, completion: @escaping ResourceCompletion
    ) -> NetworkTask? {
        nobody.start(download, completion: completion)
    }
}
