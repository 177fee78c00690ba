import AssentAuthorization
import AssentCore
import Foundation
import HTTPTypes

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Makes a call of what `URLSession` was given.
struct RequestReader: Sendable {
    private let head: HTTPCall
    private let stream: StreamReader?

    /// Reads everything but a stream.
    ///
    /// - Throws: ``URLProtocolError`` with code `invalidRequest` or `bodyTooLarge`.
    init(
        request: URLRequest, limits: HTTPLimits, bodyLimit: Int, remembering origins: OriginMemory
    ) throws(URLProtocolError) {
        guard let url = request.url?.absoluteString, let method = HTTPRequest.Method(request.httpMethod ?? "GET") else {
            throw URLProtocolError(.invalidRequest, "The request has no URL, or its method is not one.")
        }
        var call: HTTPCall
        do throws(WireError) {
            call = try HTTPCall(
                method, url: url, headerFields: try Self.fields(of: request), body: nil, limits: limits,
                remembering: origins)
        } catch {
            throw URLProtocolError(.invalidRequest, "The request cannot be sent: \(error.detail).")
        }
        // Its URL is absolute, and may come from a reply: an app that seals its calls does not send it as it is.
        call.mustBeSealed = true
        // What is not a time, or a very long one, sets no bound.
        let seconds = request.timeoutInterval
        if seconds > 0, seconds < 86_400 { call.limits.read = min(limits.read, .seconds(seconds)) }
        if let body = request.httpBody {
            guard body.count <= bodyLimit else { throw .tooLarge(bodyLimit) }
            call.body = HTTPBody([UInt8](body))
        }
        head = call
        stream = request.httpBody == nil ? request.httpBodyStream.map { StreamReader($0, limit: bodyLimit) } : nil
    }

    /// The call, with the content of a stream, which is read to its end before anything is sent.
    ///
    /// - Throws: ``URLProtocolError`` with code `bodyTooLarge` or `bodyFailed`.
    func call(clock: any WallClock) async throws -> HTTPCall {
        guard let stream else { return head }
        var call = head
        do {
            let deadline = clock.time(after: head.limits.read)
            call.body = HTTPBody(try await TimeLimit.run(until: deadline, clock: clock) { try await stream.bytes() })
        } catch is TimeLimit.Passed {
            throw URLProtocolError(.bodyFailed, "The request's stream did not end in time. Nothing was sent.")
        }
        return call
    }

    private static func fields(of request: URLRequest) throws(WireError) -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in request.allHTTPHeaderFields ?? [:] {
            guard let name = HTTPField.Name(name) else {
                throw WireError(.malformed, "a header field's name is not valid")
            }
            // The transport counts the content itself.
            if name != .contentLength { fields[name] = value }
        }
        return fields
    }
}

extension URLProtocolError {
    static func tooLarge(_ limit: Int) -> URLProtocolError {
        URLProtocolError(
            .bodyTooLarge, "The request's content has more than \(limit) bytes. Nothing was sent.",
            suggestion: "Raise bodyLimit, or send the request by AuthorizedClient.")
    }
}
