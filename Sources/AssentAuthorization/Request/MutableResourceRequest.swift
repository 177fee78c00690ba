public import AssentCore
public import HTTPTypes

/// A request that can still be changed: each property of a ``ResourceRequest``.
///
/// ```swift
/// var draft = MutableResourceRequest(.get("https://api.bank.example/accounts"))
/// draft.headers[.acceptLanguage] = "de"
/// let reply = try await assent.send(draft.immutable)
/// ```
public struct MutableResourceRequest: Sendable {
    /// See ``ResourceRequest/path``.
    public var path: String

    /// See ``ResourceRequest/method``.
    public var method: HTTPRequest.Method

    /// See ``ResourceRequest/parameters``.
    public var parameters: JSONObject?

    /// See ``ResourceRequest/parametersEncoding``.
    public var parametersEncoding: ParametersEncoding

    /// See ``ResourceRequest/body``.
    public var body: HTTPBody?

    /// See ``ResourceRequest/multipartData``.
    public var multipartData: [MultipartPart]

    /// See ``ResourceRequest/headers``.
    public var headers: HTTPFields

    /// See ``ResourceRequest/limits``.
    public var limits: HTTPLimits?

    /// See ``ResourceRequest/allowsUnsealed``.
    public var allowsUnsealed: Bool

    /// A copy of `request`.
    public init(_ request: ResourceRequest = ResourceRequest(path: "")) {
        path = request.path
        method = request.method
        parameters = request.parameters
        parametersEncoding = request.parametersEncoding
        body = request.body
        multipartData = request.multipartData
        headers = request.headers
        limits = request.limits
        allowsUnsealed = request.allowsUnsealed
    }

    /// The request as it is now. Later changes do not reach it.
    public var immutable: ResourceRequest {
        ResourceRequest(
            path: path, method: method, parameters: parameters, parametersEncoding: parametersEncoding, body: body,
            multipartData: multipartData, headers: headers, limits: limits, allowsUnsealed: allowsUnsealed)
    }
}
