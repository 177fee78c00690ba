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
    let callers: Callers
    let sessions: Sessions
    let grants: [String: OAuthProvider]
    let cookie: SessionCookie

    /// The server's own origin, which its forms come from.
    let origin: Origin

    /// The gateway's origin, when there is a gateway.
    let gateway: Origin?

    /// What is behind the gateway.
    let routes: [GatewayRoute]

    /// The path of the public URL, for example `/am`.
    let basePath: String

    /// How the pages look.
    let design: PageDesign

    let logger: Logger

    /// For the names of sign-ins.
    var random: any RandomSource = SystemRandom()

    /// Whether it answers this path below the public URL's: the page, AM's old entrance to it, and the style.
    static func answers(_ path: String) -> Bool { ["/", "/UI/Login", "/UI/style.css"].contains(path) }

    /// Answers a browser.
    func respond(to request: Request, path: String, from client: ClientAddress) async -> Response {
        if path == "/UI/style.css" { return design.stylesheet.response }
        var frame = design.frame(request.headers, below: basePath)
        do {
            guard [.get, .head, .post].contains(request.method) else {
                return problem(RequestError(405, "This page can only be opened or its form sent."), nil, frame)
            }
            let wanted = try SignInRequest(request)
            frame = design.frame(request.headers, below: basePath, locales: wanted.locales)
            guard let grants = grants[wanted.realm] else {
                guard path == "/", (request.uri.query ?? "").isEmpty else {
                    return SignInMessage.unknownRealm.document(frame).response(400)
                }
                let body = SignInPages.welcome(signIn: onlyPlace, frame)
                return PageDocument(title: "Assent", body: body, frame: frame).response()
            }
            var target: ReturnTarget?
            if let goto = wanted.goto {
                target = ReturnTarget(goto, grants: grants, gateway: gateway)
                guard target != nil else { return SignInMessage.foreignTarget.document(frame).response(400) }
            }
            let visit = SignInVisit(
                request: request, wanted: wanted, target: target, client: client, path: "\(basePath)/UI/Login",
                frame: frame,
                proof: PresentedProof(request, origin: origin.description, server: .authorizationServer),
                noncePolicy: grants.configuration.noncePolicy(of: nil))
            do {
                return try await answer(visit)
            } catch {
                return problem(error, visit, frame)
            }
        } catch {
            return problem(error, nil, frame)
        }
    }

    private func answer(_ visit: SignInVisit) async throws -> Response {
        guard visit.request.method == .post else {
            if let id = visit.wanted.transactionID { return try await look(at: id, visit) }
            return try await look(visit)
        }
        guard isOwnForm(visit.request.headers) else { return visit.says(.foreignForm, 403) }
        let form = try await SignInForm(visit.request)
        if form.isSignOut { return try await signOut(visit) }
        if visit.wanted.transactionID != nil { return try await approve(form, visit) }
        if form.isCancelled, let target = visit.target, let grants = grants[visit.wanted.realm],
            let url = await target.cancelled(grants)
        {
            var response = go(to: url, from: target, visit)
            note(visit.wanted.run, nil, visit, on: &response)
            return response
        }
        return try await take(form, visit)
    }

    /// Shows where a sign-in stands, or the first page of one.
    private func look(_ visit: SignInVisit) async throws -> Response {
        guard let run = visit.wanted.run else { return try await begin(visit, nil) }
        switch run.state(in: visit.request.headers) {
        case .done:
            if let target = visit.target { return go(to: target.url, from: target, visit) }
            // The session may have ended since, and somebody else sit there.
            let caller = try await caller(visit)
            return caller.session == nil ? try await begin(visit, nil) : signedInPage(visit)
        case .page(let authID, let notice, let name):
            do {
                let waiting = try await authentication.page(authID: authID, visit.step(cookie))
                return show(waiting, visit, run, notice, typedName: name)
            } catch let error as EngineError where error.isStale || error.isFailedSignIn {
                return try await begin(visit, .noLongerGood)
            }
        case nil: return try await begin(visit, .noLongerGood)
        }
    }

    private func begin(_ visit: SignInVisit, _ notice: SignInNotice?) async throws -> Response {
        switch try await authentication.authenticate(visit.beginning(cookie)) {
        case .page(let first): return show(first, visit, SignInRun(random), notice)
        case .success(let success):
            guard let target = visit.target else { return signedIn(success, signedInPage(visit), visit) }
            return signedIn(success, go(to: target.url, from: target, visit), visit)
        }
    }

    /// Takes the answer to a page. What comes of it is shown by the page that the browser then asks for, so that
    /// nothing is sent twice when that is loaded again.
    private func take(_ form: SignInForm, _ visit: SignInVisit) async throws -> Response {
        let run = visit.wanted.run ?? SignInRun(random)
        var step = visit.beginning(cookie)
        step.answer = form.answer
        do {
            switch try await authentication.authenticate(step) {
            case .page(let next): return lead(to: run, .page(authID: next.authID.reveal(), notice: nil), visit)
            case .success(let success):
                guard let target = visit.target, target.formTargets != nil else {
                    return signedIn(success, lead(to: run, .done, visit), visit)
                }
                var response = go(to: target.url, from: target, visit)
                note(run, nil, visit, on: &response)
                return signedIn(success, response, visit)
            }
        } catch let error as EngineError where error.isFailedSignIn && form.authID != nil {
            // The journey is over. A person tries again, so the next one begins under the message; but not where it
            // would need the proof that this one has spent.
            guard visit.proof.fields.isEmpty,
                case .page(let first) = try await authentication.authenticate(visit.beginning(cookie))
            else { throw error }
            let state = SignInRun.State.page(
                authID: first.authID.reveal(), notice: SignInNotice(error), name: form.typedName)
            return lead(to: run, state, visit)
        } catch let error as EngineError where error.isStale {
            // A page of the browser's memory. The sign-in goes on where it stands.
            guard let state = run.state(in: visit.request.headers) else { throw error }
            guard case .page(let authID, _, let name) = state else { return lead(to: run, state, visit) }
            return lead(to: run, .page(authID: authID, notice: .answeredBefore, name: name), visit)
        }
    }

    /// Whose session the browser has, to the page's realm or to the one that is named.
    ///
    /// - Throws: `SenderProofRefusal` for a session that belongs to a key: a browser cannot prove one.
    func caller(_ visit: SignInVisit, realm: String? = nil) async throws -> Caller {
        var credentials = PresentedCredentials(
            sessionOf: visit.request, cookie: cookie, origin: origin.description)
        // A proof of this address is good once, whether for a session or for a journey.
        credentials.proof?.isOfJourney = true
        let caller = try await callers.caller(withSession: credentials, realm: realm ?? visit.wanted.realm)
        if case .refusedToken(let refusal) = caller, let proof = refusal.proof { throw proof }
        return caller.through(.approval)
    }

    func show(
        _ next: AuthenticatePage, _ visit: SignInVisit, _ run: SignInRun?, _ notice: SignInNotice?,
        typedName: String? = nil
    ) -> Response {
        let asker = next.approving?.approval.clientID.map { id in
            grants[visit.wanted.realm]?.configuration.definition(of: id)?.name ?? id
        }
        let content = SignInContent(
            next, isApproval: visit.wanted.transactionID != nil, asker: asker,
            loginHint: typedName ?? visit.wanted.loginHint, language: visit.frame.language)
        let notice = notice ?? (next.isAskedAgain && content.hasFields ? .notAccepted : nil)
        guard
            let body = content.html(
                action: visit.address(run), client: visit.target?.client, notice: notice,
                canCancel: visit.target?.canBeCancelled == true && visit.wanted.transactionID == nil)
        else {
            logger.notice(
                "a journey asks what the hosted page cannot show", metadata: ["realm": "\(visit.wanted.realm)"])
            return visit.says(.unsupported, 501)
        }
        let language = visit.frame.language
        let title = notice == nil ? content.title : language.text(.error, ["title": content.title])
        return PageDocument(
            title: title, body: body, frame: visit.frame, formTargets: visit.target?.formTargets ?? []
        ).response()
    }

    /// The redirect to the page of a sign-in, which the browser then can load as often as it likes.
    private func lead(to run: SignInRun, _ state: SignInRun.State, _ visit: SignInVisit) -> Response {
        var response = Self.seeOther(visit.address(run))
        note(run, state, visit, on: &response)
        return response
    }

    private func note(
        _ run: SignInRun?, _ state: SignInRun.State?, _ visit: SignInVisit, on response: inout Response
    ) {
        for value in run?.setting(state, in: visit.request.headers) ?? [] {
            response.headers.append(HTTPField(name: .setCookie, value: value))
        }
    }

    private func signedIn(_ success: AuthenticateSuccess, _ response: Response, _ visit: SignInVisit) -> Response {
        guard success.isNewSession, success.keyThumbprint == nil, let token = success.token else { return response }
        var response = response
        for value in cookie.setting(token, answering: visit.request.headers) {
            response.headers.append(HTTPField(name: .setCookie, value: value))
        }
        return response
    }

    static func seeOther(_ location: String) -> Response {
        var headers = PageDocument.headers
        headers[.location] = location
        return Response(status: .seeOther, headers: headers)
    }

    /// Sends the browser on: by a redirect where the form's policy allows it, by a page otherwise.
    func go(to url: String, from target: ReturnTarget, _ visit: SignInVisit) -> Response {
        guard target.formTargets != nil else {
            let language = visit.frame.language
            return PageDocument(
                title: language[.goingBack], body: SignInPages.goingBack(url, language), frame: visit.frame, next: url
            ).response()
        }
        return Self.seeOther(url)
    }

    /// Whether a browser says that the form is ours. One that says nothing is not believed: every browser in use says
    /// it.
    private func isOwnForm(_ fields: HTTPFields) -> Bool {
        if let named = fields[.origin] { return (try? Origin(headerValue: named)) == origin }
        return fields[.secFetchSite] == "same-origin"
    }

    /// Where to sign in when there is one realm. Which ones there are, when there are several, is nobody's business.
    private var onlyPlace: String? {
        guard grants.count == 1, let realm = grants.keys.first else { return nil }
        return URLText.appending("realm", realm, to: "\(basePath)/UI/Login")
    }

    private func problem(_ error: any Error, _ visit: SignInVisit?, _ frame: PageFrame) -> Response {
        let isApproval = visit?.wanted.transactionID != nil
        let again = isApproval ? nil : visit?.address()
        if let error = error as? RequestError {
            return SignInMessage(error, again: again).document(frame).response(error.status)
        }
        if let refusal = error as? SenderProofRefusal {
            var response = SignInMessage(refusal).document(frame).response(401)
            response.headers[.wwwAuthenticate] = try? TokenChallenge(TokenRefusal(refusal)).fieldValue()
            response.give(nonce: refusal.code.nonce)
            // A browser proves no key when a person opens a page: with the cookie it could never sign in or out again.
            if let fields = visit?.request.headers, visit?.proof.fields.isEmpty == true,
                cookie.cookieToken(fields) != nil
            {
                response.headers[values: .setCookie] += cookie.clearing(answering: fields)
            }
            return response
        }
        if let error = error as? EngineError {
            return SignInMessage(error, again: again).document(frame).response(AMError(error).status)
        }
        logger.error("the sign-in page failed", metadata: ["error": "\(type(of: error))"])
        let said = (error as? StoreError).map(EngineError.init) ?? .unavailable
        return SignInMessage(said.code == .outcomeUnknown ? said : .unavailable, again: again).document(frame)
            .response(503)
    }
}

extension EngineError {
    /// Whether a journey ended because it was answered wrongly, and may simply be begun again.
    var isFailedSignIn: Bool { Self.failedSignIns.contains(code) }

    /// Whether a page was answered that waits no longer.
    var isStale: Bool { Self.stale.contains(code) }

    private static let stale: Set<Code> = [
        .stepAlreadyAnswered, .stepAnsweredDifferently, .stepBeingAnswered, .authIDInvalid, .authIDUnreadable,
    ]

    private static let failedSignIns: Set<Code> = [
        .loginFailed, .declined, .approvalExpired, .noDevice, .stepExpired, .accountLocked, .userInactive,
        .differentUser, .sessionRequired,
        .suspendedJourneyUnknown,
    ]
}
