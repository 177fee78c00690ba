import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// How `/oauth2` answers: refusals are in OAuth's form, or are pages where a person looks at them.
struct OAuthWire: RouteWire {
    typealias Service = OAuthProvider

    static let readsRealmParameter = true

    /// How the pages look.
    let design: PageDesign

    /// The path of the public URL, for example `/am`.
    let basePath: String

    func trusted(_ origins: WebOrigins, realm: String) -> TrustedOrigins? { origins.oauth(realm: realm) }

    /// The token in `Authorization`, or at userinfo in a form (RFC 6750 §2.2), which carries bearer tokens only. Other
    /// endpoints need the form for themselves, and a body can be read once.
    func accessToken(of request: Request, _ rule: RouteRule) async throws -> TokenCredentials {
        var authorization = try request.authorization.map { [$0] } ?? []
        if rule.door == .userInfo, request.method == .post, request.isForm,
            let token = try await request.form(upTo: rule.bodyLimit)["access_token"]
        {
            guard authorization.isEmpty else {
                throw OAuthError(.invalidRequest, "The request has more than one access token.")
            }
            authorization = ["Bearer \(token)"]
        }
        return TokenCredentials(authorization)
    }

    func response(refusing error: any Error, to request: Request, of rule: RouteRule?, realm: String?) throws
        -> Response
    {
        if let refusal = error as? RouteRefusal {
            switch refusal {
            case .noRoute, .unknownRealm: return .oauth(404, "not_found", "There is no such endpoint.")
            case .method: return .oauth(405, "invalid_request", "The endpoint does not know this method.")
            case .forgery(let reason): return .oauth(403, "invalid_request", reason)
            case .sessionRequired, .tokenRequired: return .oauth(.missingToken, realm: realm ?? "")
            case .foreignSession: return .oauth(403, "access_denied", "The session belongs to another realm.")
            case .tokenRefused(let refusal): return .oauth(refusal, realm: realm ?? "")
            case .kind:
                let error = EngineError(.tokenKind)
                return .oauth(403, error.code.rawValue, error.detail)
            }
        }
        if let error = error as? RequestError {
            return page(request, rule, SignInMessage(error, again: nil), error.status) ?? .oauth(error)
        }
        if let refusal = error as? SenderProofRefusal { return .oauth(refusal) }
        if let error = error as? EngineError, error.code == .tooManyRequests { return .oauth(tooMany: error) }
        let error = OAuthError(answering: error)
        let scheme = TokenCredentials(request.headers[values: .authorization]).scheme ?? .bearer
        return page(request, rule, SignInMessage(error), error.status)
            ?? .oauth(error, realm: realm ?? "", scheme: scheme)
    }

    /// A page for somebody who looks at the answer of an endpoint that browsers are sent to; `nil` for a program.
    private func page(_ request: Request, _ rule: RouteRule?, _ message: SignInMessage, _ status: Int) -> Response? {
        guard let rule, ["authorize", "connect/endSession"].contains(rule.path), request.isOfPerson else { return nil }
        return message.document(design.frame(request.headers, below: basePath)).response(status)
    }
}

extension RouteCall {
    /// The body as a form.
    ///
    /// - Throws: ``RequestError`` 413, 415; `OAuthError`.
    func form(repeatable: Set<String> = []) async throws -> OAuthParameters {
        try await request.form(upTo: rule.bodyLimit, repeatable: repeatable)
    }
}

extension Request {
    /// Whether a page asks by `fetch` whether the session is alive: then it may read the answer, which leads nowhere.
    var isSessionCheck: Bool {
        guard method == .get, let query = try? parameters() else { return false }
        return query["response_type"] == "none" && query["redirect_uri"] == nil
    }

    /// Whether a person looks at the answer.
    var isOfPerson: Bool {
        headers[.accept]?.contains("text/html") == true && [nil, "navigate"].contains(headers[.secFetchMode])
    }

    /// Whether the body says that it is a form.
    var isForm: Bool {
        let type = headers[.contentType]?.prefix { $0 != ";" }.lowercased() ?? ""
        return type == "application/x-www-form-urlencoded"
    }

    /// The body as a form of at most `limit` bytes; some parameters may be there more than once.
    ///
    /// - Throws: ``RequestError`` 413, 415; `OAuthError`.
    func form(upTo limit: Int, repeatable: Set<String> = []) async throws -> OAuthParameters {
        let bytes = try await bytes(upTo: limit)
        guard bytes.isEmpty || isForm else {
            throw RequestError(415, "The media type must be application/x-www-form-urlencoded.")
        }
        return try OAuthParameters(urlEncoded: bytes, repeatable: repeatable)
    }

    /// The query as parameters of OAuth; some may be there more than once.
    func parameters(repeatable: Set<String> = []) throws -> OAuthParameters {
        try OAuthParameters(urlEncoded: Array((uri.query ?? "").utf8), repeatable: repeatable)
    }

    /// The field `Authorization`, of which there may be one.
    var authorization: String? {
        get throws {
            let values = headers[values: .authorization]
            guard values.count <= 1 else {
                throw OAuthError(.invalidRequest, "The request has more than one Authorization.")
            }
            return values.first
        }
    }
}

extension TrustedOrigins {
    /// Whether a browser says that a form is the page of ours. One that says nothing is not believed.
    func isOwnForm(_ fields: HTTPFields) -> Bool {
        switch sender(of: fields) {
        case .own: true
        case .unnamed: fields[.secFetchSite] == "same-origin"
        default: false
        }
    }
}
