public import AssentAuthorization
public import AssentCore

#if canImport(FoundationNetworking)
import Foundation
public import FoundationNetworking
#else
public import Foundation
#endif

/// Lets an app that calls its services by `URLSession` have approvals without rewriting its calls.
///
/// The class carries the client: an app overrides ``client`` in a subclass and names the subclass in
/// `URLSessionConfiguration.protocolClasses`. Two clients are two subclasses. This class itself has no client and
/// accepts nothing.
///
/// It takes the requests to the client's resources and sends them by the client's transport, with its pins, its
/// credentials and its policies. `docs/url-session.md` says what `URLSession` can and cannot do with it.
open class AssentURLProtocol: URLProtocol {
    /// The domain of the errors that tasks end with. The error of this library is their `NSUnderlyingErrorKey`; see
    /// ``underlyingError(of:)``.
    public static let errorDomain = "AssentURLSession"

    /// What sends the requests of this class; `nil` accepts none. Approvals are answered by its policies. It is asked
    /// for each request, on any thread.
    open class var client: AuthorizedClient? { nil }

    /// Bounds of each sending. A request's `timeoutInterval` makes `read` shorter, never longer. The user's time is
    /// apart from them; see `AuthorizationPolicy.patience`.
    open class var limits: HTTPLimits { HTTPLimits() }

    /// How many bytes a request's `httpBody` or `httpBodyStream` may have.
    open class var bodyLimit: Int { 4 << 20 }

    /// What the code of an error of ``errorDomain`` says about the request.
    public enum Effect: Int, Sendable {
        /// It had none: it was not sent, or refused.
        case none = 1
        /// Nobody knows. It must not be sent again before somebody has asked for its outcome.
        case unknown = 2
    }

    /// The error of this library that a task ended with; `nil` when another one ended it.
    public static func underlyingError(of error: any Error) -> (any AssentError)? {
        (error as NSError).userInfo[NSUnderlyingErrorKey] as? any AssentError
    }

    private let loading = Loading()

    /// Whether the request goes to a resource of ``client``.
    override open class func canInit(with request: URLRequest) -> Bool {
        guard let client, let url = request.url?.absoluteString, let origin = try? client.origins.origin(of: url)
        else { return false }
        return client.configuration.resources[origin] != nil || client.access(to: origin) != nil
    }

    /// The request as it is: what is approved is what the app wrote.
    override open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Sends the request.
    override open func startLoading() {
        guard loading.isFirstStart() else { return }
        loading.hold(self)
        do throws(URLProtocolError) {
            guard let client = Self.client else {
                throw URLProtocolError(.noClient, "The class has no client any more. Nothing was sent.")
            }
            try checkTask()
            loading.start(
                client,
                try RequestReader(
                    request: request, limits: Self.limits, bodyLimit: Self.bodyLimit, remembering: client.origins))
        } catch {
            loading.endElsewhere(.failure(error))
        }
    }

    /// Ends the call, and the journey that approves it.
    override open func stopLoading() {
        guard isOver else { return }
        loading.stop()
    }

    /// Whether the task has ended. Foundation on Linux also stops a task that is suspended, and starts it again when it
    /// is resumed. The call cannot be sent a second time, so it goes on: somebody has to be told how it ended.
    private var isOver: Bool {
        #if canImport(FoundationNetworking)
        return task.map { $0.state == .canceling || $0.state == .completed } ?? true
        #else
        return true
        #endif
    }

    private func checkTask() throws(URLProtocolError) {
        #if canImport(FoundationNetworking)
        // An upload's content is in a member that only Foundation can read.
        if task is URLSessionUploadTask { throw .unsupported("An upload task hides its content.") }
        // Foundation would end the process when it looks for the file.
        if task is URLSessionDownloadTask { throw .unsupported("A download task's file cannot be handed over.") }
        #endif
    }
}
