public import AssentAuthorization
import AssentCore
import HTTPTypes

/// A request whose reply is written to a file as it comes.
///
/// ```swift
/// let request = ResourceRequest.get("statements/2025").download(to: path)
/// let reply = try await assent.userClient.sendAuthenticatedRequest(request)
/// ```
public struct ResourceDownload: Sendable {
    /// What is asked, by GET.
    public let request: ResourceRequest

    /// Where the file will be. It replaces what is there, and only its owner may read it.
    public let path: String

    /// How many bytes are accepted.
    public let maximumBytes: Int
}

extension ResourceRequest {
    /// The same request, with the reply's content in a file instead of memory.
    ///
    /// The file has its name when all of it is there, and not before. The content of a reply whose status is not 2xx
    /// is not downloaded: it is in ``ResourceResponse/data``.
    ///
    /// - Parameters:
    ///   - path: where the file will be, in a directory that exists.
    ///   - maximumBytes: how many bytes are accepted; 16 GiB if nothing is said.
    /// - Returns: what the clients send. A request that is not a GET is refused then, with 10015.
    public func download(to path: String, maximumBytes: Int = 16 << 30) -> ResourceDownload {
        ResourceDownload(request: self, path: path, maximumBytes: max(0, maximumBytes))
    }

    /// The same request with a file as its content, which is read piece by piece while it is sent.
    ///
    /// - Parameter path: where the file is.
    /// - Returns: a request with this content in the place of parameters and body. It can be sent again, since the file
    ///   is opened for each sending.
    /// - Throws: ``ResourceError``: `invalidRequest` when there is no file that can be read.
    public func upload(from path: String) throws(ResourceError) -> ResourceRequest {
        let body: HTTPBody
        do {
            body = try HTTPBody(file: path)
        } catch {
            throw ResourceError(
                .fetchResource, .invalidRequest, error.detail, suggestion: error.suggestion, transportError: error)
        }
        return ResourceRequest(
            path: self.path, method: method, parameters: parameters, parametersEncoding: parametersEncoding, body: body,
            multipartData: multipartData, headers: headers, limits: limits, allowsUnsealed: allowsUnsealed)
    }
}
