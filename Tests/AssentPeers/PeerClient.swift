package import AssentCore
import AssentTransportNIO
package import HTTPTypes
import TestSupport

/// A plain HTTP client for programs on this machine, with the cookies of one browser.
package struct PeerClient: Sendable {
    /// What carries the requests.
    package let transport: any HTTPTransport

    private static let patient = HTTPLimits(
        connect: .seconds(Patience.seconds), read: .seconds(Patience.seconds), total: .seconds(Patience.seconds))

    private let cookies = Locked<[String: String]>([:])

    /// A client without cookies.
    ///
    /// - Parameter transport: what carries the requests; `nil` stands for ``transport()``.
    /// - Throws: what making a transport throws.
    package init(_ transport: (any HTTPTransport)? = nil) throws {
        self.transport = try transport ?? Self.transport()
    }

    /// The SDK's own transport, with the one option that lets it speak without TLS to this machine.
    ///
    /// - Parameter oneAtATime: whether all of these transports together send one request at a time to each program:
    ///   glewlwyd mixes up sign-ins that come at once, and gives one caller what another has asked for.
    /// - Returns: a transport with connections of its own.
    /// - Throws: what making a transport throws.
    package static func transport(oneAtATime: Bool = true) throws -> any HTTPTransport {
        let transport = try NIOTransport(
            configuration: NIOTransportConfiguration(
                pins: ["127.0.0.1": .unpinned, "localhost": .unpinned], allowPlaintextLoopback: true
            ).withLeastLimit(.seconds(Patience.seconds)))
        return oneAtATime ? OneAtATime(base: transport) : transport
    }

    /// A reply, read to its end.
    package struct Answer: Sendable {
        /// The status code.
        package let status: Int
        /// The header fields.
        package let fields: HTTPFields
        /// The content.
        package let bytes: [UInt8]

        /// The content as text.
        package var text: String { String(decoding: bytes, as: UTF8.self) }

        /// The content as JSON; `null` when it is none.
        package var json: JSONValue { (try? JSONValue.parse(bytes)) ?? .null }
    }

    /// The `Cookie` field of the next request.
    package var cookieField: String {
        cookies.withLock { $0.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: "; ") }
    }

    /// Sends a request with the cookies and keeps those of the reply. Redirects are not followed.
    package func send(
        _ method: HTTPRequest.Method, _ url: String, _ fields: HTTPFields = [:], body: [UInt8]? = nil
    ) async throws -> Answer {
        var request = try HTTPRequest(method, url: url, headerFields: fields)
        let cookie = cookieField
        if !cookie.isEmpty { request.headerFields[.cookie] = cookie }
        let reply = try await transport.send(HTTPCall(request, body: body.map { HTTPBody($0) }, limits: Self.patient))
        for field in reply.response.headerFields[values: .setCookie] {
            let pair = field.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1).map(String.init)
            if pair.count == 2 { cookies.withLock { $0[pair[0]] = pair[1] } }
        }
        return Answer(
            status: reply.status, fields: reply.response.headerFields,
            bytes: try await reply.body.collect(upTo: 4 << 20))
    }

    /// Sends JSON.
    package func send(_ method: HTTPRequest.Method, _ url: String, json: JSONValue) async throws -> Answer {
        try await send(method, url, [.contentType: "application/json"], body: json.serializedBytes())
    }

    /// Posts a form.
    package func post(_ url: String, form: FormItems, fields: HTTPFields = [:]) async throws -> Answer {
        var fields = fields
        fields[.contentType] = FormEncoding.mediaType
        return try await send(.post, url, fields, body: Array(FormEncoding.encode(form).utf8))
    }
}
