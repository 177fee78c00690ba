import AssentCore
import HTTPTypes

/// One request to the provider and its reply, read within bounds. It knows no tokens.
struct ProviderExchange: Sendable {
    struct Reply {
        let status: Int
        let fields: HTTPFields
        let body: [UInt8]

        /// Status and fields.
        var response: HTTPResponse { HTTPResponse(status: .init(code: status), headerFields: fields) }

        /// The body, when it is a JSON object.
        var object: JSONObject? {
            (try? JSONValue.parse(body, limits: JSONLimits(depth: 32, values: 20_000)))?.object
        }

        /// Whether it is a page for people.
        var isPage: Bool {
            let type = (fields[.contentType] ?? "").prefix { $0 != ";" }.lowercased()
            if type.isEmpty { return body.first { ![0x09, 0x0A, 0x0D, 0x20].contains($0) } == UInt8(ascii: "<") }
            return !body.isEmpty && type.contains("html")
        }

        /// The server's `error`, when it sent one that can be shown.
        var oauthError: String? {
            guard let error = object?["error"]?.string, error.utf8.count <= 64,
                error.utf8.allSatisfy(\.isASCIIPrintable)
            else { return nil }
            return error
        }

        /// What an Assent server says beside its `error`, where that can be shown.
        var assentError: String? {
            guard let error = object?["assent_error"]?.string, error.utf8.count <= 64,
                error.utf8.allSatisfy(\.isASCIIPrintable)
            else { return nil }
            return error
        }
    }

    let transport: any HTTPTransport
    let limits: HTTPLimits

    func get(_ url: String, fields: HTTPFields = [:]) async throws -> Reply {
        var fields = fields
        fields[.accept] = fields[.accept] ?? "application/json"
        return try await send(.get, url, fields, body: nil)
    }

    func post(
        _ url: String, form: FormItems, fields: HTTPFields = [:], within limit: Duration? = nil
    ) async throws -> Reply {
        var fields = fields
        fields[.accept] = "application/json"
        fields[.contentType] = FormEncoding.mediaType
        return try await send(.post, url, fields, body: HTTPBody(FormEncoding.encode(form)), within: limit)
    }

    /// Sends JSON, or nothing, with any method.
    func send(
        _ method: HTTPRequest.Method, _ url: String, json: JSONValue?, fields: HTTPFields
    ) async throws -> Reply {
        var fields = fields
        fields[.accept] = "application/json"
        if json != nil { fields[.contentType] = "application/json" }
        return try await send(method, url, fields, body: json.map { HTTPBody($0.serializedBytes()) })
    }

    private func send(
        _ method: HTTPRequest.Method, _ url: String, _ fields: HTTPFields, body: HTTPBody?,
        within limit: Duration? = nil
    ) async throws -> Reply {
        var limits = limits
        if let limit { limits.total = limits.total.map { min($0, limit) } ?? limit }
        let call: HTTPCall
        do throws(WireError) {
            call = try HTTPCall(method, url: url, headerFields: fields, body: body, limits: limits)
        } catch {
            throw TokenError(.unusableEndpoint, "The provider's endpoint cannot be used: \(error.detail).")
        }
        do {
            let reply = try await transport.send(call)
            let bytes = try await reply.body.collect(upTo: limits.replyBytes)
            return Reply(status: reply.status, fields: reply.response.headerFields, body: bytes)
        } catch let error as HTTPTransportError {
            if error.code == .cancelled { throw CancellationError() }
            throw TokenError(.transport, error.detail, transportError: error)
        }
    }
}
