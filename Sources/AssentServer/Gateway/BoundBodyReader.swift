import AssentCore
import AssentEnforcement
import AssentEngine
import HTTPTypes
import Hummingbird

/// The body of a request that a policy may bind: what is hashed is what will be forwarded.
struct BoundBodyReader: EnforcedContent {
    private let request: Request
    private let mediaType: String
    private let limit: Int

    /// The body of a request.
    ///
    /// - Parameters:
    ///   - request: the request, whose body is read once at most.
    ///   - mediaType: the type that can be bound (``GatewayRoute/mediaType``).
    ///   - limit: the largest that is read whole, in bytes.
    init(_ request: Request, mediaType: String, limit: Int) {
        self.request = request
        self.mediaType = mediaType
        self.limit = limit
    }

    /// Whether its stated length and type, and its other fields, are such that it could be bound. It can then be read
    /// whatever the policies say.
    var isShort: Bool {
        let isTyped: Bool
        do {
            isTyped = try type() != nil
        } catch {
            // Also without content: the engine asks for what it binds, and then the fields are refused.
            return false
        }
        let length = request.headers[.contentLength].map { Int($0) ?? .max }
        guard let length else { return request.headers[.transferEncoding] == nil }
        return length <= limit && isTyped
    }

    /// Reads it whole.
    ///
    /// - Throws: ``RequestError`` when it is longer than the route allows, or does not come.
    func bytes() async throws -> [UInt8] { try await request.bytes(upTo: limit) }

    /// Reads it whole and checks that it can be bound.
    ///
    /// - Throws: ``RequestError`` or `EngineError`, with what is wrong.
    func checked() async throws -> [UInt8] {
        let type = try type()
        let bytes = try await bytes()
        try check(bytes, type)
        return bytes
    }

    /// Checks that content of this request that was read can be bound.
    ///
    /// - Throws: as ``checked()``.
    func check(_ bytes: [UInt8]) throws { try check(bytes, try type()) }

    func tooLarge(_ limit: Int) -> any Error {
        RequestError(413, "The request is larger than \(limit) bytes.")
    }

    private func check(_ bytes: [UInt8], _ type: BoundMediaType?) throws {
        guard let type else {
            guard bytes.isEmpty else { throw BoundMediaType.refusal(of: mediaType) }
            return
        }
        if type.isJSON { _ = try BoundJSON.parse(bytes, limits: JSONLimits(bytes: limit)) }
    }

    /// The type of the content; `nil` when none is stated.
    private func type() throws -> BoundMediaType? {
        guard request.headers[values: .contentType].count <= 1 else {
            throw RequestError(400, "The request has more than one Content-Type.")
        }
        guard request.headers[.contentEncoding].map({ $0.lowercased() == "identity" }) ?? true else {
            throw RequestError(415, "A request that must be approved cannot have a Content-Encoding.")
        }
        // A service may change a part by it (RFC 9110 §14.5), where the user has seen a whole.
        guard !request.headers.contains(.contentRange) else {
            throw RequestError(400, "A request that must be approved cannot have a Content-Range.")
        }
        return try request.headers[.contentType].map { try BoundMediaType.required(mediaType, $0) }
    }
}
