import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// One request on its way from the gateway to the service and back.
struct Forwarding: Sendable {
    let upstream: Upstream
    let served: ServedRoute
    let resource: CanonicalResource

    /// The user's name, for the service.
    let user: String?

    /// The id of the transaction that was spent for it, if there was one. It is then sent once at most.
    let transaction: String?

    let publicOrigin: Origin

    /// The address of the connection that the request came by.
    let client: String?

    /// Stays with a reply that does not end by itself.
    let streams: StreamWatch

    /// What the service is told of the caller in a signed token, given the body that is bound; `nil` where it is not
    /// told.
    let identify: (@Sendable (_ boundBody: [UInt8]?) async throws -> HTTPField?)?

    /// The answer to a request whose transaction was spent.
    static func response(to result: ForwardingResult<Response>, transaction: String) -> Response {
        switch result {
        case .sent(let response): response
        case .sentBefore:
            .problem(
                409, "This transaction was used before. Nothing was forwarded now.",
                members: ["transaction": .string(transaction)])
        case .notRecorded:
            .problem(
                503, "The gateway could not note that it forwards. Nothing was forwarded.",
                members: ["transaction": .string(transaction), "forwarded": "no"])
        }
    }

    /// The answer to a request for a stream that there is no place for.
    static func noPlace(_ members: JSONObject = ["forwarded": "no"]) -> Response {
        .problem(503, "There are as many open streams as there may be. Nothing was forwarded.", members: members)
    }

    /// Sends the request to the service. Returns the answer to the client, and what became of the request.
    func send(_ request: Request, boundBody: [UInt8]?) async -> (response: Response, outcome: UpstreamOutcome) {
        guard streams.hasPlace(for: request.headers) else {
            return (Self.noPlace(members(forwarded: "no")), .notForwarded)
        }
        let fields: HTTPFields
        do {
            fields = try await self.fields(of: request, boundBody: boundBody)
        } catch {
            let response = Response.problem(
                503, "The gateway cannot sign who calls. Nothing was forwarded.", members: members(forwarded: "no"))
            return (response, .notForwarded)
        }
        let (body, content) = self.body(of: request, boundBody: boundBody)
        do {
            let reply = try await upstream.forward(
                HTTPRequest(
                    method: request.method, scheme: nil, authority: nil, path: served.target(of: resource),
                    headerFields: fields),
                body: body, to: served.route.upstream, once: transaction != nil)
            let response = await response(to: reply, method: request.method)
            return (Self.closing(response, after: content), .answered(status: reply.status))
        } catch Upstream.Failure.notForwarded {
            let response = Response.problem(
                502, "The service cannot be reached. Nothing has happened.", members: members(forwarded: "no"))
            return (response, .notForwarded)
        } catch {
            let fault: RequestError? = content?.withLock { $0.fault }
            let response = Response.problem(
                fault?.status ?? 504,
                fault?.message
                    ?? "The service gave no answer. The outcome is unknown: ask again before you repeat it.",
                members: members(forwarded: "unknown"))
            return (Self.closing(response, after: content), .unknown)
        }
    }

    /// The answer to a request whose content was not read to its end, as the last of its connection (RFC 9112 §9.6).
    /// Reading for the service ends with the service's answer, and the connection is read by nobody after that: a
    /// client that sent its next request there would not be heard.
    private static func closing(_ response: Response, after content: Locked<StreamedContent>?) -> Response {
        guard let content, !content.withLock({ $0.isWhole }) else { return response }
        var response = response
        response.headers[.connection] = "close"
        return response
    }

    private func response(to reply: HTTPReply, method: HTTPRequest.Method) async -> Response {
        guard let body = method == .head ? ResponseBody() : streams.body(of: reply) else {
            await Self.end(reply)
            return .problem(
                504, "The service answers by a stream, and there are as many as there may be. It has been asked.",
                members: members(forwarded: "unknown"))
        }
        return Response(
            status: .init(code: reply.status),
            headers: ForwardedFields.reply(reply.response.headerFields, cookie: served.fields.cookie), body: body)
    }

    /// Ends a reply that nobody gets, and the sending of its request. What is left of the request's body is read by the
    /// client's connection after the answer: if it were still being read for the service as well, that would end the
    /// process.
    private static func end(_ reply: HTTPReply) async {
        let reading = Task<Void, any Error> { for try await _ in reply.body {} }
        reading.cancel()
        _ = await reading.result
    }

    /// The fields that the service gets. Throws when nothing can be signed.
    func fields(of request: Request, boundBody: [UInt8]?) async throws -> HTTPFields {
        var fields = ForwardedFields.request(
            request.headers, served.fields, user: user, idempotencyKey: transaction, publicOrigin: publicOrigin,
            client: client)
        if let identity = try await identify?(boundBody) { fields[identity.name] = identity.value }
        return fields
    }

    private func members(forwarded: String) -> JSONObject {
        var members = JSONObject([.init(name: "forwarded", value: .string(forwarded))])
        members["transaction"] = transaction.map(JSONValue.string)
        return members
    }

    /// What is sent; `content` says, afterwards, how far it has come. It is `nil` where nothing more is read from the
    /// client.
    private func body(
        of request: Request, boundBody: [UInt8]?
    ) -> (body: HTTPBody?, content: Locked<StreamedContent>?) {
        if let boundBody { return (boundBody.isEmpty ? nil : HTTPBody(boundBody), nil) }
        let length = request.headers[.contentLength].flatMap(Int.init)
        if length == 0 || length == nil && request.headers[.transferEncoding] == nil { return (nil, nil) }
        let content = Locked(StreamedContent())
        return (HTTPBody(streaming: request.body, length: length, state: content), content)
    }
}
