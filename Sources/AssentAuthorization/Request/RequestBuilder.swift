public import AssentCore
public import HTTPTypes

/// Makes a ``ResourceRequest`` step by step. Each step is a new builder, so one can be the start of several requests.
///
/// ```swift
/// let transfer = RequestBuilder()
///     .setMethod(.post)
///     .setPath("/transfers")
///     .setParameters(["to": "Bob", "amount": "200.00"])
///     .build()
/// ```
public struct RequestBuilder: Sendable {
    private var draft: MutableResourceRequest

    /// A builder that begins with `request`.
    public init(_ request: ResourceRequest = ResourceRequest(path: "")) {
        draft = MutableResourceRequest(request)
    }

    /// See ``ResourceRequest/path``.
    public func setPath(_ path: String) -> RequestBuilder { with(\.path, path) }

    /// See ``ResourceRequest/method``.
    public func setMethod(_ method: HTTPRequest.Method) -> RequestBuilder { with(\.method, method) }

    /// See ``ResourceRequest/parameters``.
    public func setParameters(_ parameters: JSONObject?) -> RequestBuilder { with(\.parameters, parameters) }

    /// See ``ResourceRequest/parametersEncoding``.
    public func setParametersEncoding(_ encoding: ParametersEncoding) -> RequestBuilder {
        with(\.parametersEncoding, encoding)
    }

    /// See ``ResourceRequest/body``.
    public func setBody(_ body: HTTPBody?) -> RequestBuilder { with(\.body, body) }

    /// See ``ResourceRequest/multipartData``.
    public func setMultipartData(_ parts: [MultipartPart]) -> RequestBuilder { with(\.multipartData, parts) }

    /// See ``ResourceRequest/headers``.
    public func setHeaders(_ headers: HTTPFields) -> RequestBuilder { with(\.headers, headers) }

    /// See ``ResourceRequest/limits``.
    public func setLimits(_ limits: HTTPLimits?) -> RequestBuilder { with(\.limits, limits) }

    /// See ``ResourceRequest/allowsUnsealed``.
    public func setAllowsUnsealed(_ allows: Bool) -> RequestBuilder { with(\.allowsUnsealed, allows) }

    /// The request. Later steps do not reach it.
    public func build() -> ResourceRequest { draft.immutable }

    private func with<Value>(
        _ property: WritableKeyPath<MutableResourceRequest, Value>, _ value: Value
    ) -> RequestBuilder {
        var next = self
        next.draft[keyPath: property] = value
        return next
    }
}
