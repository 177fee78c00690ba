package import AssentCore
import AssentJOSE

/// How a service behind the gateway is told, in a signed token, who calls. `X-Remote-User` has no proof: whatever else
/// reaches the service may set it.
package struct ServiceIdentity: Sendable, Hashable {
    /// The service that the token is for (`aud`). Another one must refuse it.
    package let audience: String

    /// The claims about the user that the token has beside those that it always has.
    package let claims: [String]

    /// For how many seconds a token is valid: as long as one request may take to arrive.
    package static let lifetime: Int64 = 60

    /// The `typ` of its header (RFC 8725 §3.11), so that it is taken for no other token.
    package static let type = "assent-identity+jwt"

    /// An identity for the service `audience` with these claims; see ``unknownClaim(in:)``.
    package init(audience: String, claims: [String] = []) {
        self.audience = audience
        self.claims = claims
    }

    /// The first name that is not one of ``selectableClaims``; `nil` when all are.
    package static func unknownClaim(in names: [String]) -> String? {
        names.first { !UserClaims.selectable.contains($0) }
    }

    /// The claims that a route can choose.
    package static var selectableClaims: [String] { UserClaims.selectable }

    /// The claims about a caller, as the gateway with the origin `issuer` states them; `nil` about nobody.
    ///
    /// `sub` is the user's id, and the client's for a client that calls for itself: then it is `client_id` too.
    func statement(
        about caller: Caller, realm: String, issuer: String, of request: SpentRequest?, id: String, at now: Int64
    ) -> JSONObject? {
        var statement = JSONObject()
        if let user = caller.user {
            statement = UserClaims.chosen(claims, about: user)
            statement["sub"] = .string(user.id)
        }
        if case .accessToken(let grant, _) = caller {
            if grant.owner == nil { statement["sub"] = .string(grant.clientID) }
            statement["client_id"] = .string(grant.clientID)
        }
        guard statement["sub"] != nil else { return nil }
        statement["iss"] = .string(issuer)
        statement["aud"] = .string(audience)
        statement["realm"] = .string(realm)
        statement["iat"] = .integer(now)
        statement["exp"] = .integer(now + Self.lifetime)
        statement["jti"] = .string(id)
        if let request { statement["txn"] = .object(request.json) }
        return statement
    }
}

/// The request that a transaction was spent for, as it was approved.
package struct SpentRequest: Sendable {
    /// The transaction's id.
    package let transaction: String

    /// The HTTP method.
    package let method: String

    /// What was asked for, as clients know it.
    package let resource: CanonicalResource

    /// The SHA-256 of the body in base64url, where the policy binds it: of the very bytes that the service gets.
    let bodyDigest: String?

    /// A request, with its body where the policy binds it.
    package init(transaction: String, method: String, resource: CanonicalResource, body: [UInt8]?) {
        self.init(
            transaction: transaction, method: method, resource: resource,
            bodyDigest: body.map { Base64URL.encode(SHA2.sha256($0)) })
    }

    /// A request, with the digest of its body where the policy binds it.
    init(transaction: String, method: String, resource: CanonicalResource, bodyDigest: String?) {
        self.transaction = transaction
        self.method = method
        self.resource = resource
        self.bodyDigest = bodyDigest
    }

    fileprivate var json: JSONObject {
        var json: JSONObject = [
            "id": .string(transaction), "method": .string(method), "url": .string(resource.url),
        ]
        if let bodyDigest { json["body_sha256"] = .string(bodyDigest) }
        return json
    }
}

extension GatewayAccess {
    /// Signs a token that tells a service who calls.
    ///
    /// - Parameters:
    ///   - identity: for which service, with which claims.
    ///   - caller: who calls.
    ///   - realm: the realm that decides on the route.
    ///   - issuer: the gateway's own origin (`iss`).
    ///   - request: the request, if a transaction was spent for it.
    /// - Returns: the token; `nil` for a caller who is nobody.
    /// - Throws: ``StoreError`` or ``EngineError`` when there is no key to sign with.
    package func token(
        _ identity: ServiceIdentity, about caller: Caller, realm: String, issuer: String, of request: SpentRequest?
    ) async throws -> Secret? {
        let id = context.random.token(byteCount: 16)
        let statement = identity.statement(
            about: caller, realm: realm, issuer: issuer, of: request, id: id, at: context.clock.epochSeconds)
        guard let statement else { return nil }
        return try await keys.sign(statement, type: ServiceIdentity.type, for: .gatewayIdentity)
    }

    private var context: EngineContext { settlement.context }
}
