import AssentCore
import AssentEngine
import AssentStore
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// `/UI/Login`: journeys in a browser, without a line of script. It drives the same engine as `authenticate`.
struct SignInRoute: Sendable {
    let authentication: Authentication
    let grants: [String: OAuthProvider]
    let cookie: SessionCookie

    /// The server's own origin, which its forms come from.
    let origin: Origin

    /// The gateway's origin, when there is a gateway.
    let gateway: Origin?

    /// The path of the public URL, for example `/am`.
    let basePath: String

    let logger: Logger

    /// Whether it answers this path below the public URL's: the page, AM's old entrance to it, and the style.
    static func answers(_ path: String) -> Bool { ["/", "/UI/Login", "/UI/style.css"].contains(path) }

    /// Answers a browser.
    func respond(to request: Request, path: String, from client: ClientAddress) async -> Response {
        if path == "/UI/style.css" { return Stylesheet.response(to: request) }
        do {
            guard [.get, .head, .post].contains(request.method) else {
                return problem(RequestError(405, "This page can only be opened or its form sent."), nil)
            }
            let wanted = try SignInRequest(request)
            guard let grants = grants[wanted.realm] else {
                guard path == "/", (request.uri.query ?? "").isEmpty else { return page(.unknownRealm, 400) }
                return PageDocument(title: "Assent", body: SignInPages.welcome(signIn: onlyPlace))
                    .response(stylesheet: stylesheet)
            }
            var target: ReturnTarget?
            if let goto = wanted.goto {
                target = ReturnTarget(goto, grants: grants, gateway: gateway)
                guard target != nil else { return page(.foreignTarget, 400) }
            }
            return await answer(request, wanted, target, client)
        } catch {
            return problem(error, nil)
        }
    }

    private func answer(
        _ request: Request, _ wanted: SignInRequest, _ target: ReturnTarget?, _ client: ClientAddress
    ) async -> Response {
        do {
            guard request.method == .post else {
                if wanted.isTransaction { return page(SignInPages.beginning(action(wanted)), formTargets: []) }
                return try await step(request, wanted, target, client, form: nil)
            }
            guard isOwnForm(request.headers) else { return page(.foreignForm, 403) }
            let form = try await SignInForm(request)
            if form.isCancelled, let target, let url = grants[wanted.realm].flatMap(target.cancelled) {
                return go(to: url, from: target)
            }
            return try await step(request, wanted, target, client, form: form)
        } catch {
            return problem(error, wanted)
        }
    }

    private func step(
        _ request: Request, _ wanted: SignInRequest, _ target: ReturnTarget?, _ client: ClientAddress, form: SignInForm?
    ) async throws -> Response {
        var step = AuthenticateRequest(
            realm: wanted.realm, sessionToken: cookie.cookieToken(request.headers), clientAddress: client.limitKey,
            header: { name in HTTPField.Name(name).flatMap { request.headers[$0] } })
        if let answer = form?.answer { step.answer = answer } else { wanted.begin(&step) }
        let reply: AuthenticateReply
        do {
            reply = try await authentication.authenticate(step)
        } catch let error as EngineError where error.isFailedSignIn && !wanted.isTransaction && form?.authID != nil {
            // The journey is over. A person tries again, so the next one begins under the message.
            step.answer = nil
            wanted.begin(&step)
            guard case .page(let first) = try await authentication.authenticate(step) else { throw error }
            return show(first, wanted, target, notice: .init(error))
        }
        switch reply {
        case .page(let next):
            let content = SignInContent(next)
            return show(next, wanted, target, notice: form?.shown == content.digest ? .notAccepted : nil)
        case .success(let success): return leave(success, target)
        }
    }

    private func show(
        _ next: AuthenticatePage, _ wanted: SignInRequest, _ target: ReturnTarget?, notice: SignInNotice?
    ) -> Response {
        let content = SignInContent(next, isApproval: wanted.isTransaction)
        guard
            let body = content.html(
                action: action(wanted), client: target?.client, notice: notice,
                canCancel: target?.canBeCancelled == true && !wanted.isTransaction)
        else {
            logger.notice("a journey asks what the hosted page cannot show", metadata: ["realm": "\(wanted.realm)"])
            return page(.unsupported, 501)
        }
        let title = (notice == nil ? "" : "Error: ") + content.title
        return PageDocument(title: title, body: body, formTargets: target?.formTargets ?? [])
            .response(stylesheet: stylesheet)
    }

    private func leave(_ success: AuthenticateSuccess, _ target: ReturnTarget?) -> Response {
        var response = target.map { go(to: $0.url, from: $0) } ?? page(.signedIn, 200)
        if success.isNewSession, let token = success.token { response.headers[.setCookie] = cookie.setting(token) }
        return response
    }

    /// Sends the browser on: by a redirect where the form's policy allows it, by a page otherwise.
    private func go(to url: String, from target: ReturnTarget) -> Response {
        guard target.formTargets != nil else {
            return PageDocument(title: "Going back", body: SignInPages.goingBack(url), next: url)
                .response(stylesheet: stylesheet)
        }
        var headers = PageDocument.headers
        headers[.location] = url
        return Response(status: .seeOther, headers: headers)
    }

    /// Whether a browser says that the form is ours. One that says nothing is not believed: every browser in use says
    /// it.
    private func isOwnForm(_ fields: HTTPFields) -> Bool {
        if let named = fields[.origin] { return (try? Origin(headerValue: named)) == origin }
        return fields[.secFetchSite] == "same-origin"
    }

    private func action(_ wanted: SignInRequest) -> String {
        let query = wanted.query
        return "\(basePath)/UI/Login" + (query.isEmpty ? "" : "?\(query)")
    }

    /// Where to sign in when there is one realm. Which ones there are, when there are several, is nobody's business.
    private var onlyPlace: String? {
        guard grants.count == 1, let realm = grants.keys.first else { return nil }
        return URLText.appending("realm", realm, to: "\(basePath)/UI/Login")
    }

    private var stylesheet: String { Stylesheet.path(below: basePath) }

    private func page(_ message: SignInMessage, _ status: Int) -> Response {
        PageDocument(title: message.title, body: message.html).response(status, stylesheet: stylesheet)
    }

    private func page(_ body: HTML, formTargets: [String]) -> Response {
        PageDocument(title: "Approve a request", body: body, formTargets: formTargets).response(stylesheet: stylesheet)
    }

    private func problem(_ error: any Error, _ wanted: SignInRequest?) -> Response {
        let again = wanted.flatMap { $0.isTransaction ? nil : action($0) }
        if let error = error as? RequestError {
            return page(SignInMessage(error, again: again), error.status)
        }
        if let error = error as? EngineError {
            let isDeclined = wanted?.isTransaction == true && error.isFailedSignIn && error.code != .stepExpired
            return page(isDeclined ? .notApproved : SignInMessage(error, again: again), AMError(error).status)
        }
        logger.error("the sign-in page failed", metadata: ["error": "\(type(of: error))"])
        return page(SignInMessage(EngineError.unavailable, again: again), 503)
    }
}

extension EngineError {
    /// Whether a journey ended because it was answered wrongly, and may simply be begun again.
    var isFailedSignIn: Bool { Self.failedSignIns.contains(code) }

    private static let failedSignIns: Set<Code> = [
        .loginFailed, .stepExpired, .accountLocked, .userInactive, .differentUser, .sessionRequired,
        .suspendedJourneyUnknown,
    ]
}
