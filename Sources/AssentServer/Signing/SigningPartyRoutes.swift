import AssentCore
import AssentEngine
import AssentSigningProtocol
import HTTPTypes
import Hummingbird

/// What relying parties ask: to create a transaction, how it stands, to cancel it.
struct SigningPartyRoutes: Sendable {
    let call: RouteCall<SigningProvider>
    let party: OAuthClient

    private var provider: SigningProvider { call.provider }

    /// How a transaction stands, or its end.
    func transaction() async throws -> Response {
        guard call.request.method == .delete else { return try await view() }
        try await provider.parties.cancel(call.id, client: party.id)
        return Response(status: .noContent)
    }

    func create() async throws -> Response {
        let body = try await call.jsonObject()
        try body.allow(["user", "claim", "template", "authorization_details", "did", "locale", "ttl", "origin"])
        guard let key = call.request.headers[.idempotencyKey] else {
            throw SigningRefusal(.invalidRequest, "The field Idempotency-Key is missing.")
        }
        guard let template = try body.signingText("template"),
            let details = try body.signingText("authorization_details")
        else {
            throw SigningRefusal(.invalidRequest, "template and authorization_details must be there, as texts.")
        }
        let user = try body.signingText("user")
        guard (user == nil) == (body["claim"]?.bool == true), body["claim"].map({ $0.bool == true }) ?? true else {
            throw SigningRefusal(.invalidRequest, "user must be there, or claim: true.")
        }
        var wish = TransactionWish(
            clientID: party.id, clientName: party.name ?? party.id, user: user, template: template, details: details,
            idempotencyKey: key)
        wish.did = try body.signingText("did")
        if let locale = try body.signingText("locale") { wish.locale = locale }
        if let ttl = body["ttl"] {
            guard let seconds = ttl.integer else { throw SigningRefusal(.invalidRequest, "ttl must be whole seconds.") }
            wish.lifetime = Int64(seconds)
        }
        if let origin = body["origin"] {
            guard let place = origin["place"]?.string, let address = origin["address"]?.string else {
                throw SigningRefusal(.invalidRequest, "origin has place and address.")
            }
            wish.origin = DocumentOrigin(place: place, address: address)
        }
        let made = try await provider.parties.create(wish)
        let ticket = user == nil ? try await provider.parties.ticket(of: made) : nil
        return .json(
            201,
            JSONValue(omittingNil: [
                "txn": .string(made.txn.text), "exp": .integer(made.expiresAt),
                "number": made.matchNumber.map(JSONValue.string), "tds": ticket.map(JSONValue.string),
            ]))
    }

    private func view() async throws -> Response {
        var seconds = 0
        if let text = try call.request.query("wait") {
            guard let value = Int(text), (0...25).contains(value) else {
                throw SigningRefusal(.invalidRequest, "wait is 0 to 25 seconds.")
            }
            seconds = value
        }
        let view = try await provider.parties.view(call.id, client: party.id, wait: seconds)
        return .json(
            200,
            JSONValue(omittingNil: [
                "txn": .string(view.transaction.txn.text), "state": .string(view.state.rawValue),
                "status": view.transaction.status.map(JSONValue.string),
                "reason": view.reason.map(JSONValue.string), "receipt": view.receipt.map(JSONValue.string),
            ]))
    }
}
