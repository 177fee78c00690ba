import AssentCore
import AssentEngine
import AssentJOSE
import Foundation
import HTTPTypes
import Hummingbird

/// The OAuth 2 / OpenID Connect endpoints of all realms, below `/oauth2`. Finds the realm, the route and the caller of
/// a request, and answers errors in OAuth's form.
struct OAuthRoutes: Sendable {
    let providers: [String: OAuthProvider]
    let callers: Callers
    let cookie: SessionCookie

    /// Whose pages may call the endpoints that are not for everybody's.
    let origins: WebOrigins

    /// Where a browser is sent to sign in.
    let serverURL: String

    /// How the pages look.
    let design: PageDesign

    private static let firstSegments = RouteTable.firstSegments(of: RouteTable.oauth)

    /// Answers a request below `/oauth2`; `path` is what follows.
    func respond(to request: Request, path: String) async throws -> Response {
        let realm: String?
        do throws(RequestError) { realm = try request.query("realm") } catch {
            return readable(.oauth(error), request)
        }
        guard let target = RealmPath(path, realmParameter: realm, endpoints: Self.firstSegments),
            let provider = providers[target.realm], let trusted = origins.oauth(realm: target.realm),
            let rule = RouteTable.rule(target.endpoint, of: RouteTable.oauth)
        else { return readable(.oauth(404, "not_found", "There is no such endpoint."), request) }
        var response: Response
        do {
            response = try await answer(request, rule: rule, provider: provider, trusted: trusted)
        } catch let error as RequestError {
            response = page(request, rule, SignInMessage(error, again: nil), error.status) ?? .oauth(error)
        } catch {
            let error = OAuthError(answering: error)
            response =
                page(request, rule, SignInMessage(error), error.status) ?? .oauth(error, realm: target.realm)
        }
        guard rule.crossOrigin != .sameOrigin || isSessionCheck(request, rule) else { return response }
        let isListed = trusted.open(&response, to: request.headers)
        if !isListed, rule.crossOrigin == .everyOrigin {
            response.headers[.accessControlAllowOrigin] = "*"
            response.headers[.accessControlExposeHeaders] = "WWW-Authenticate"
        }
        return response
    }

    /// A refusal that pages of all listed origins may read: where the realm or the endpoint is wrong, a developer sees
    /// that, and not a failed `fetch`.
    private func readable(_ refusal: Response, _ request: Request) -> Response {
        if let answer = origins.anywhere.preflight(request, methods: [.get, .post]) { return answer }
        var response = refusal
        origins.anywhere.open(&response, to: request.headers)
        return response
    }

    /// Whether a page asks by `fetch` whether the session lives: then it may read the answer, which leads nowhere.
    private func isSessionCheck(_ request: Request, _ rule: RouteRule) -> Bool {
        guard rule.path == "authorize", request.method == .get, let query = try? query(of: request) else {
            return false
        }
        return query["response_type"] == "none" && query["redirect_uri"] == nil
    }

    private func answer(
        _ request: Request, rule: RouteRule, provider: OAuthProvider, trusted: TrustedOrigins
    ) async throws -> Response {
        if rule.crossOrigin != .sameOrigin, let answer = trusted.preflight(request, methods: rule.methods ?? []) {
            return answer
        }
        if request.method == .options, rule.crossOrigin == .everyOrigin { return Self.preflight(rule) }
        guard rule.allows(request.method) else {
            var response = Response.oauth(405, "invalid_request", "The endpoint does not know this method.")
            response.headers[.allow] = rule.allow
            return response
        }
        let caller = try await caller(request, rule: rule, realm: provider.configuration.realm)
        switch rule.path {
        case "authorize": return try await authorize(request, rule, caller, provider)
        case "access_token":
            let parameters = try await form(of: request, rule)
            return .json(
                200, try await provider.tokens(parameters, authorization: try authorization(request)).json)
        case "token/revoke":
            try await provider.revoke(try await form(of: request, rule), authorization: try authorization(request))
            return .json(200, [:])
        case "introspect":
            let parameters = try await form(of: request, rule)
            return .json(200, try await provider.introspect(parameters, authorization: try authorization(request)))
        case "userinfo":
            guard case .accessToken(let grant) = caller else { throw OAuthError.invalidToken }
            let answer = try provider.userInfo(of: grant)
            try await provider.noteUse(of: grant)
            return .json(200, answer)
        case "connect/jwk_uri": return cacheable(try await provider.publishedKeys().json)
        case "connect/endSession": return try await endSession(request, rule, provider)
        case ".well-known/openid-configuration": return cacheable(provider.metadata())
        default: return .oauth(404, "not_found", "There is no such endpoint.")
        }
    }

    private func caller(_ request: Request, rule: RouteRule, realm: String) async throws -> Caller {
        switch rule.caller {
        case .anyone, .client: return .anonymous
        case .optionalSession, .session:
            return try await callers.caller(with: cookie.credential(request.headers), realm: realm)
        case .accessToken:
            var authorization = try authorization(request).map { [$0] } ?? []
            if let token = try await postedToken(request, rule) {
                guard authorization.isEmpty else {
                    throw OAuthError(.invalidRequest, "The request has more than one access token.")
                }
                authorization = ["Bearer \(token)"]
            }
            let caller = try await callers.caller(with: BearerCredentials(authorization), realm: realm)
            if case .refusedToken = caller { throw OAuthError.invalidToken }
            guard case .accessToken = caller else { throw OAuthError.missingToken }
            return caller
        }
    }

    /// An access token in a form (RFC 6750 §2.2).
    private func postedToken(_ request: Request, _ rule: RouteRule) async throws -> String? {
        guard request.method == .post, Self.isForm(request) else { return nil }
        return try await form(of: request, rule)["access_token"]
    }

    private static func isForm(_ request: Request) -> Bool {
        let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased() ?? ""
        return type == "application/x-www-form-urlencoded"
    }

    private func authorize(
        _ request: Request, _ rule: RouteRule, _ caller: Caller, _ provider: OAuthProvider
    ) async throws -> Response {
        let parameters = request.method == .post ? try await form(of: request, rule) : try query(of: request)
        let frame = design.frame(request.headers, below: basePath, locales: parameters["ui_locales"])
        var decision: AuthorizationDecision?
        if let text = parameters["decision"] {
            guard request.method == .post, let said = AuthorizationDecision(rawValue: text),
                let session = caller.session,
                isOwnForm(request.headers, provider)
                    || parameters["csrf"].map({ provider.isCSRFToken(Secret($0), of: session) }) ?? false
            else { throw OAuthError(.badRequest, "The decision does not come from the user's own page.") }
            decision = said
        }
        switch try await provider.authorize(parameters, session: caller.session, decision: decision) {
        case .redirect(let redirect) where redirect.isPosted(for: parameters):
            return posted(redirect, frame)
        case .redirect(let redirect):
            // Browsers hold the redirect that follows a form against the form's policy.
            guard decision != nil, ReturnTarget.formTargets(redirectURI: redirect.uri) == nil else {
                return Self.redirect(redirect.location)
            }
            return goingOn(to: redirect.location, frame)
        case .login(let demand):
            let goto = "\(provider.configuration.endpointBase)/authorize?\(demand.query)"
            var location = URLText.appending("realm", provider.configuration.realm, to: "\(serverURL)/UI/Login")
            location = URLText.appending("goto", goto, to: location)
            switch demand.requirement {
            case .journey(let name): location = URLText.appending("service", name, to: location)
            case .level(let level):
                location = URLText.appending("authIndexType", "level", to: location)
                location = URLText.appending("authIndexValue", "\(level)", to: location)
            case nil: break
            }
            for name in ["login_hint", "ui_locales"] {
                if let value = parameters[name] { location = URLText.appending(name, value, to: location) }
            }
            if demand.replacesSession { location = URLText.appending("prompt", "login", to: location) }
            return Self.redirect(location)
        case .sessionLives: return Response(status: .noContent, headers: [.cacheControl: "no-store"])
        case .consent(let demand):
            // An app that presents its session itself has no browser that could show the question.
            guard case .session(_, .cookie) = caller else {
                let redirect = try provider.withoutConsent(parameters)
                return redirect.isPosted(for: parameters) ? posted(redirect, frame) : Self.redirect(redirect.location)
            }
            let page = ConsentPage(
                demand: demand, scopeTexts: provider.configuration.scopeTexts, language: frame.language)
            let action = "\(basePath)/oauth2\(RealmPath.path(of: provider.configuration.realm))/authorize"
            return PageDocument(
                title: page.title, body: page.html(action: action), frame: frame,
                formTargets: ReturnTarget.formTargets(redirectURI: demand.redirectURI) ?? []
            ).response()
        }
    }

    /// The answer as a form that sends itself to the client; where scripts are off, the user presses the button.
    private func posted(_ redirect: AuthorizationRedirect, _ frame: PageFrame) -> Response {
        // What a policy cannot name, no form may be sent to.
        guard let targets = ReturnTarget.formTargets(redirectURI: redirect.uri) else {
            return Self.redirect(redirect.location)
        }
        return PageDocument(
            title: frame.language[.goingBack], body: SignInPages.posting(redirect, frame.language), frame: frame,
            formTargets: targets, isSubmitted: true
        ).response()
    }

    /// A page for somebody who looks at the answer of an endpoint that browsers are sent to; `nil` for a program.
    private func page(_ request: Request, _ rule: RouteRule, _ message: SignInMessage, _ status: Int) -> Response? {
        guard ["authorize", "connect/endSession"].contains(rule.path), Self.isPerson(request) else { return nil }
        return message.document(design.frame(request.headers, below: basePath)).response(status)
    }

    private static func isPerson(_ request: Request) -> Bool {
        request.headers[.accept]?.contains("text/html") == true
            && [nil, "navigate"].contains(request.headers[.secFetchMode])
    }

    /// Whether a browser says that a form is the page of ours. One that says nothing is not believed.
    private func isOwnForm(_ fields: HTTPFields, _ provider: OAuthProvider) -> Bool {
        switch origins.oauth(realm: provider.configuration.realm)?.sender(of: fields) {
        case .own: true
        case .unnamed: fields[.secFetchSite] == "same-origin"
        default: false
        }
    }

    /// The path of the public URL, for example `/am`.
    private var basePath: String { URLComponents(string: serverURL)?.path ?? "" }

    private func endSession(_ request: Request, _ rule: RouteRule, _ provider: OAuthProvider) async throws -> Response {
        let repeatable = OAuthProvider.repeatableHint
        let parameters =
            request.method == .post
            ? try await form(of: request, rule, repeatable: repeatable) : try query(of: request, repeatable: repeatable)
        let realm = provider.configuration.realm
        var decision: AuthorizationDecision?
        if let text = parameters["decision"] {
            guard request.method == .post, let said = AuthorizationDecision(rawValue: text),
                isOwnForm(request.headers, provider)
            else { throw OAuthError(.badRequest, "The decision does not come from the user's own page.") }
            decision = said
        }
        var session: LiveSession?
        if parameters.all("id_token_hint").isEmpty {
            // A program has nobody who could be asked.
            guard Self.isPerson(request) else {
                throw OAuthError.invalidRequest("Request is missing a required parameter: id_token_hint")
            }
            let caller = try await callers.caller(with: cookie.credential(request.headers), realm: realm)
            if case .session(let live, .cookie) = caller { session = live }
        }
        let frame = design.frame(request.headers, below: basePath, locales: parameters["ui_locales"])
        var response: Response
        switch try await provider.endSession(parameters, session: session, decision: decision) {
        case .done:
            response =
                Self.isPerson(request)
                ? SignInMessage.signedOut.document(frame).response() : Response(status: .noContent)
        case .redirect(let location):
            // Browsers hold the redirect that follows a form against the form's policy.
            response =
                decision != nil && ReturnTarget.formTargets(redirectURI: location) == nil
                ? goingOn(to: location, frame) : Self.redirect(location)
        case .kept: return SignInMessage.signedIn.document(frame).response()
        case .question(let question):
            let page = SignOutPage(question: question, language: frame.language)
            let action = "\(basePath)/oauth2\(RealmPath.path(of: realm))/connect/endSession"
            let targets = question.target.flatMap { ReturnTarget.formTargets(redirectURI: $0) } ?? []
            return PageDocument(
                title: page.title, body: page.html(action: action), frame: frame, formTargets: targets
            ).response()
        }
        // The ID token of another session says nothing about the one that this browser has.
        let remaining = try await callers.caller(with: cookie.credential(request.headers), realm: realm)
        if case .anonymous = remaining {
            response.headers[values: .setCookie] = cookie.clearing(answering: request.headers)
        }
        return response
    }

    private func goingOn(to location: String, _ frame: PageFrame) -> Response {
        PageDocument(
            title: frame.language[.goingBack], body: SignInPages.goingBack(location, frame.language), frame: frame,
            next: location
        ).response()
    }

    /// The answer to a browser that asks whether a page may call an endpoint (Fetch §3.3.2).
    private static func preflight(_ rule: RouteRule) -> Response {
        Response(
            status: .noContent,
            headers: [
                .accessControlAllowMethods: rule.allow,
                .accessControlAllowHeaders: "Authorization, Content-Type", .accessControlMaxAge: "600",
            ])
    }

    /// 302 without a body: AM's iOS SDK takes anything that is not JSON for a failure.
    private static func redirect(_ location: String) -> Response {
        Response(status: .found, headers: [.location: location, .cacheControl: "no-store"])
    }

    private func cacheable(_ value: JSONValue) -> Response {
        var response = Response.json(200, value)
        response.headers[.cacheControl] = "public, max-age=60"
        response.headers[.pragma] = nil
        response.headers[.expires] = nil
        return response
    }

    private func form(
        of request: Request, _ rule: RouteRule, repeatable: Set<String> = []
    ) async throws -> OAuthParameters {
        let bytes = try await request.bytes(upTo: rule.bodyLimit)
        guard bytes.isEmpty || Self.isForm(request) else {
            throw RequestError(415, "The media type must be application/x-www-form-urlencoded.")
        }
        return try OAuthParameters(urlEncoded: bytes, repeatable: repeatable)
    }

    private func query(of request: Request, repeatable: Set<String> = []) throws -> OAuthParameters {
        try OAuthParameters(urlEncoded: Array((request.uri.query ?? "").utf8), repeatable: repeatable)
    }

    private func authorization(_ request: Request) throws -> String? {
        let values = request.headers[values: .authorization]
        guard values.count <= 1 else {
            throw OAuthError(.invalidRequest, "The request has more than one Authorization.")
        }
        return values.first
    }
}
