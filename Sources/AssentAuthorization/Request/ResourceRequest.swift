public import AssentCore
public import HTTPTypes

/// What an app asks of a resource: a value that does not change, made in one go, by ``RequestBuilder``, from a
/// ``MutableResourceRequest``, or by ``get(_:parameters:headers:)`` and its like.
///
/// ```swift
/// let search = ResourceRequest(path: "/accounts", parameters: ["kind": "savings", "year": [2025, 2026]])
/// ```
///
/// Nothing is checked while it is made. What cannot be sent as it is written is refused, and never repaired, when it is
/// sent: see ``ResourceError``.
public struct ResourceRequest: Sendable {
    /// Where it goes: appended to the address of the resources, or an absolute URL.
    public let path: String

    /// GET, POST, PUT, PATCH, HEAD or DELETE; every other one is refused when the request is sent.
    public let method: HTTPRequest.Method

    /// Names and values. They go into the URL with GET, HEAD and DELETE, and are the content of the others.
    ///
    /// A list repeats its name in a URL and a form; an object has no form there.
    public let parameters: JSONObject?

    /// How parameters become content. It says nothing about those in a URL.
    public let parametersEncoding: ParametersEncoding

    /// The content. It takes the place of the parameters, and is `application/octet-stream` unless a field says
    /// otherwise. It must be replayable for the request to be repeated after an approval.
    public let body: HTTPBody?

    /// The parts of a form with files, for POST alone. Parameters become fields before them.
    public let multipartData: [MultipartPart]

    /// More header fields. Credentials and what the connection says of itself are not among them.
    public let headers: HTTPFields

    /// How long it may take and how much may come back; `nil` for what is usual where it is sent.
    public let limits: HTTPLimits?

    /// Whether an absolute URL may lead to an origin whose calls are not sealed, in an app that seals its calls
    /// (payload encryption). Otherwise such a request is refused before anything is sent.
    public let allowsUnsealed: Bool

    /// A request.
    public init(
        path: String, method: HTTPRequest.Method = .get, parameters: JSONObject? = nil,
        parametersEncoding: ParametersEncoding = .json, body: HTTPBody? = nil, multipartData: [MultipartPart] = [],
        headers: HTTPFields = [:], limits: HTTPLimits? = nil, allowsUnsealed: Bool = false
    ) {
        self.path = path
        self.method = method
        self.parameters = parameters
        self.parametersEncoding = parametersEncoding
        self.body = body
        self.multipartData = multipartData
        self.headers = headers
        self.limits = limits
        self.allowsUnsealed = allowsUnsealed
    }
}

/// How the parameters of a request become its content.
public enum ParametersEncoding: String, Sendable, CaseIterable {
    /// `application/json`
    case json
    /// `application/x-www-form-urlencoded`
    case formURL

    /// The media type of the content.
    public var mediaType: String {
        switch self {
        case .json: "application/json"
        case .formURL: FormEncoding.mediaType
        }
    }
}
