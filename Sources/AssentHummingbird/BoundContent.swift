import AssentCore
import HTTPTypes
import Hummingbird
import NIOCore

/// The content of requests that policies bind to an approval: it is read whole before they are asked.
public struct BoundContent: Hashable, Sendable {
    /// The one media type, without parameters, in lower case.
    public let mediaType: String

    /// The most bytes.
    public let limit: Int

    /// Content of a media type.
    public init(_ mediaType: String, limit: Int = 64 << 10) {
        self.mediaType = mediaType.lowercased()
        self.limit = limit
    }

    /// JSON of at most 64 KiB.
    public static let json = BoundContent("application/json")

    /// Reads it.
    ///
    /// - Throws: ``Refusal``, and what the client's connection throws.
    func read(_ request: Request) async throws -> [UInt8] {
        let types = request.headers[values: .contentType]
        guard types.count <= 1 else { throw Refusal(400, "The request has more than one Content-Type.") }
        guard request.headers[values: .contentEncoding].allSatisfy({ $0.lowercased() == "identity" }) else {
            throw Refusal(415, "A request that must be approved cannot have a Content-Encoding.")
        }
        // A handler may change a part by it (RFC 9110 §14.5), where the user has seen a whole.
        guard !request.headers.contains(.contentRange) else {
            throw Refusal(400, "A request that must be approved cannot have a Content-Range.")
        }
        guard types.allSatisfy({ BoundMediaType($0)?.essence == mediaType }) else { throw unsupported }
        if let text = request.headers[.contentLength], let length = Int(text), length > limit { throw tooLarge }
        var bytes: [UInt8] = []
        for try await buffer in request.body {
            guard buffer.readableBytes <= limit - bytes.count else { throw tooLarge }
            bytes += buffer.readableBytesView
        }
        guard bytes.isEmpty || !types.isEmpty else { throw unsupported }
        if mediaType == "application/json" || mediaType.hasSuffix("+json"), !types.isEmpty { try check(bytes) }
        return bytes
    }

    /// What programs read differently is not put before anybody.
    private func check(_ bytes: [UInt8]) throws(Refusal) {
        do throws(JSONError) {
            _ = try JSONValue.parse(bytes, limits: JSONLimits(bytes: limit), duplicates: .rejectAlike)
        } catch {
            throw Refusal(400, "The request's body cannot be shown for approval. \(error.detail)")
        }
    }

    private var tooLarge: Refusal { Refusal(413, "The request's body is too large to be approved.") }

    private var unsupported: Refusal {
        Refusal(415, "A body that is to be approved must be sent as \(mediaType), in UTF-8.")
    }
}
