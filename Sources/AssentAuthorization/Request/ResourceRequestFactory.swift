public import AssentCore
public import HTTPTypes

/// Makes requests by functions, where a function is wanted and no initialiser.
///
/// ```swift
/// let accounts = ResourceRequestFactory.makeResourceRequest(path: "/accounts", method: .get)
/// ```
public enum ResourceRequestFactory {
    /// A request that does not change.
    public static func makeResourceRequest(
        path: String, method: HTTPRequest.Method = .get, parameters: JSONObject? = nil,
        parametersEncoding: ParametersEncoding = .json, body: HTTPBody? = nil, multipartData: [MultipartPart] = [],
        headers: HTTPFields = [:], limits: HTTPLimits? = nil, allowsUnsealed: Bool = false
    ) -> ResourceRequest {
        ResourceRequest(
            path: path, method: method, parameters: parameters, parametersEncoding: parametersEncoding, body: body,
            multipartData: multipartData, headers: headers, limits: limits, allowsUnsealed: allowsUnsealed)
    }

    /// A request that can still be changed.
    public static func makeMutableResourceRequest(
        path: String, method: HTTPRequest.Method = .get, parameters: JSONObject? = nil,
        parametersEncoding: ParametersEncoding = .json, body: HTTPBody? = nil, multipartData: [MultipartPart] = [],
        headers: HTTPFields = [:], limits: HTTPLimits? = nil, allowsUnsealed: Bool = false
    ) -> MutableResourceRequest {
        MutableResourceRequest(
            makeResourceRequest(
                path: path, method: method, parameters: parameters, parametersEncoding: parametersEncoding,
                body: body, multipartData: multipartData, headers: headers, limits: limits,
                allowsUnsealed: allowsUnsealed))
    }
}
