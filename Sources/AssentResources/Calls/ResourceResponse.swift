public import AssentAuthorization
public import AssentCore
public import HTTPTypes

/// What a resource answered. Nothing in it is decoded, and every status is one.
public struct ResourceResponse: Sendable {
    /// Status and header fields as they came.
    public let raw: HTTPResponse

    /// The content as it came; empty when it is in ``file``.
    public let data: [UInt8]

    /// Where the content is, if it was downloaded.
    public let file: String?

    /// Whether the user was asked for it.
    public let authorization: ReplyAuthorization

    init(_ raw: HTTPResponse, data: [UInt8], file: String? = nil, _ authorization: ReplyAuthorization) {
        self.raw = raw
        self.data = data
        self.file = file
        self.authorization = authorization
    }

    /// The status, for example 200.
    public var status: Int { raw.status.code }

    /// The header fields, in their order.
    public var headerFields: HTTPFields { raw.headerFields }

    /// The error that the status is: `httpStatus` from 400 on, else `nil`.
    public var error: ResourceError? {
        guard status >= 400 else { return nil }
        return ResourceError(.generic, .httpStatus, "The resource answered with status \(status).", status: status)
    }
}
