import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird
import Logging

/// One request on its way from the gateway to the service and back.
struct Forwarding: Sendable {
    let gateway: Gateway
    let route: GatewayRoute
    let resource: CanonicalResource
    let user: String?

    /// The transaction that was spent for it, if there was one.
    let transaction: TransactionRecord?

    /// Forwards and answers.
    ///
    /// With a transaction the work goes on when the client goes away: the service may have acted, and what became of it must
    /// be on record.
    func run(_ request: Request, boundBody: [UInt8]?) async -> Response {
        guard let transaction else { return await forward(request, boundBody: boundBody).response }
        return await Task { await once(request, boundBody: boundBody, transaction: transaction) }.value
    }

    private func once(_ request: Request, boundBody: [UInt8]?, transaction: TransactionRecord) async -> Response {
        do {
            guard try await gateway.transactions.recordForwarding(id: transaction.id) else {
                return .problem(
                    409, "This transaction was used before. Nothing was forwarded now.",
                    members: ["transaction": .string(transaction.id)])
            }
        } catch {
            return .problem(
                503, "The gateway could not note that it forwards. Nothing was forwarded.",
                members: ["transaction": .string(transaction.id), "forwarded": "no"])
        }
        let (response, outcome) = await forward(request, boundBody: boundBody)
        do {
            try await gateway.transactions.recordOutcome(id: transaction.id, outcome)
        } catch {
            gateway.logger.error(
                "an outcome could not be recorded",
                metadata: ["transaction": "\(transaction.id)", "status": "\(response.status.code)"])
        }
        return response
    }

    private func forward(
        _ request: Request, boundBody: [UInt8]?
    ) async -> (response: Response, outcome: UpstreamOutcome) {
        let fields = ForwardedFields.request(
            request.headers, cookie: gateway.credentials.cookie, keepsAuthorization: route.keepsAuthorization,
            user: user, idempotencyKey: transaction?.id, strips: route.stripHeaders, publicOrigin: gateway.publicOrigin)
        do {
            let reply = try await gateway.upstream.forward(
                method: request.method, service: route.upstream, target: resource.target, fields: fields,
                body: body(of: request, boundBody: boundBody), once: transaction != nil)
            let replyFields = ForwardedFields.reply(
                reply.response.headerFields, cookie: gateway.credentials.cookie)
            let response = Response(
                status: .init(code: reply.status), headers: replyFields,
                body: request.method == .head ? ResponseBody() : ResponseBody(reply.body))
            return (response, .answered(status: reply.status))
        } catch Upstream.Failure.notForwarded {
            let response = Response.problem(
                502, "The service cannot be reached. Nothing has happened.", members: members(forwarded: "no"))
            return (response, .notForwarded)
        } catch {
            let response = Response.problem(
                504, "The service gave no answer. What happened is unknown: ask again before you repeat it.",
                members: members(forwarded: "unknown"))
            return (response, .unknown)
        }
    }

    private func members(forwarded: String) -> JSONObject {
        var members = JSONObject([.init(name: "forwarded", value: .string(forwarded))])
        members["transaction"] = transaction.map { .string($0.id) }
        return members
    }

    private func body(of request: Request, boundBody: [UInt8]?) -> HTTPBody? {
        if let boundBody { return boundBody.isEmpty ? nil : HTTPBody(boundBody) }
        let length = request.headers[.contentLength].flatMap(Int.init)
        if length == 0 || length == nil && request.headers[.transferEncoding] == nil { return nil }
        return HTTPBody(streaming: request.body, length: length)
    }
}
