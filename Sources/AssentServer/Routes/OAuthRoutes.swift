import AssentCore
import AssentEngine
import AssentJOSE
import Foundation
import HTTPTypes
import Hummingbird

/// What answers below `/oauth2`: the OAuth 2 / OpenID Connect endpoints of all realms.
struct OAuthRoutes: Sendable {
    let callers: Callers
    let cookie: SessionCookie

    /// Verifies proofs of keys, for all doors of the process.
    let proofs: SenderProofs

    /// The public origin of the server, which is in the URLs that proofs are about.
    let origin: String

    /// Where a browser is sent to sign in.
    let serverURL: String

    /// The links that sign browsers in.
    let links: WebLinks

    /// Takes what the probes of apps have found.
    let reports: IntegrityReports

    /// How the pages look.
    let design: PageDesign

    /// `access_token`.
    func tokens(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        let parameters = try await call.form()
        let provider = call.service
        let caller = try await provider.clients.client(
            of: parameters, authorization: try call.request.authorization, at: .token, isSealed: callers.isSealed)
        let proof = try proofs.check(
            PresentedProof(call.request, origin: origin, server: .authorizationServer), accessToken: nil,
            policy: provider.configuration.noncePolicy(of: caller.client, for: parameters["grant_type"]))
        let shown = proof.map { TokenRequestProof(keyThumbprint: $0.thumbprint, nonce: $0.nonce) }
        let tokens = try await provider.tokens(parameters, of: caller, proof: shown) {
            if let proof { try await caller.spend(proof, by: proofs) }
        }
        var response = Response.json(200, tokens.json)
        response.give(nonce: proof?.newNonce)
        return response
    }

    /// `token/revoke`.
    func revoke(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        try await call.service.revoke(
            try await call.form(), authorization: try call.request.authorization, isSealed: callers.isSealed)
        return .json(200, [:])
    }

    /// `introspect`.
    func introspect(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        let parameters = try await call.form()
        let authorization = try call.request.authorization
        return .json(
            200,
            try await TokenIntrospection(call.service).answer(
                parameters, authorization: authorization, isSealed: callers.isSealed))
    }

    /// `userinfo`.
    func userInfo(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        let grant = try call.grant
        let answer = try call.service.userInfo(of: grant)
        try await call.service.noteUse(of: grant)
        return .json(200, answer)
    }

    /// `web_link`.
    func webLink(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        let link = try await links.make(
            to: try await call.form()["target"], for: try call.grant, in: call.service.configuration)
        return .json(
            200,
            [
                "url": .string(WebLinkRoute.url(of: link, at: serverURL)), "expires_in": .integer(link.expiresIn),
            ])
    }

    /// `connect/jwk_uri`.
    func keys(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        cacheable(try await call.service.publishedKeys().json)
    }

    /// `connect/identity_keys`.
    func identityKeys(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        cacheable(try await call.service.keys.publishedIdentityKeys().json)
    }

    /// `.well-known/openid-configuration`.
    func metadata(_ call: RouteCall<OAuthProvider>) -> Response { cacheable(call.service.metadata()) }

    /// `authorize`.
    func authorize(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        let request = call.request
        let caller = call.caller
        let provider = call.service
        let parameters = request.method == .post ? try await call.form() : try request.parameters()
        let frame = design.frame(request.headers, below: basePath, locales: parameters["ui_locales"])
        var decision: AuthorizationDecision?
        if let text = parameters["decision"] {
            guard request.method == .post, let said = AuthorizationDecision(rawValue: text),
                let session = caller.session,
                call.trusted.isOwnForm(request.headers)
                    || parameters["csrf"].map({ AuthorizationEndpoint.isCSRFToken(Secret($0), of: session) }) ?? false
            else { throw OAuthError(.badRequest, "The decision does not come from the user's own page.") }
            decision = said
        }
        switch try await AuthorizationEndpoint(provider).answer(parameters, session: caller.session, decision: decision)
        {
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
                let redirect = try await AuthorizationEndpoint(provider).withoutConsent(parameters)
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

    /// The path of the public URL, for example `/am`.
    private var basePath: String { URLComponents(string: serverURL)?.path ?? "" }

    /// `connect/endSession`.
    func endSession(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        let request = call.request
        let provider = call.service
        let repeatable = EndSessionEndpoint.repeatableHint
        let parameters =
            request.method == .post
            ? try await call.form(repeatable: repeatable) : try request.parameters(repeatable: repeatable)
        let realm = provider.configuration.realm
        var decision: AuthorizationDecision?
        if let text = parameters["decision"] {
            guard request.method == .post, let said = AuthorizationDecision(rawValue: text),
                call.trusted.isOwnForm(request.headers)
            else { throw OAuthError(.badRequest, "The decision does not come from the user's own page.") }
            decision = said
        }
        var session: LiveSession?
        if parameters.all("id_token_hint").isEmpty {
            // A program has nobody who could be asked.
            guard request.isOfPerson else {
                throw OAuthError.invalidRequest("Request is missing a required parameter: id_token_hint")
            }
            let caller = try await callers.caller(withSession: presented(request), realm: realm)
            if case .refusedToken(let refusal) = caller { throw RouteRefusal.tokenRefused(refusal) }
            if case .session(let live, .cookie, _) = caller { session = live }
        }
        let frame = design.frame(request.headers, below: basePath, locales: parameters["ui_locales"])
        var response: Response
        switch try await EndSessionEndpoint(provider).answer(parameters, session: session, decision: decision) {
        case .done:
            response =
                request.isOfPerson
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
        if try await !callers.hasLiveSession(presented(request)) {
            response.headers[values: .setCookie] = cookie.clearing(answering: request.headers)
        }
        return response
    }

    private func presented(_ request: Request) -> PresentedCredentials {
        PresentedCredentials(sessionOf: request, cookie: cookie, origin: origin)
    }

    private func goingOn(to location: String, _ frame: PageFrame) -> Response {
        PageDocument(
            title: frame.language[.goingBack], body: SignInPages.goingBack(location, frame.language), frame: frame,
            next: location
        ).response()
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
}
