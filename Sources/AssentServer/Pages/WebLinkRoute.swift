import AssentCore
import AssentEngine
import AssentStore
import HTTPTypes
import Hummingbird
import Logging

/// `/UI/Link`: the page of a link by which an app signs a browser in, without a line of script. Opening it does
/// nothing, however often and by whatever program; sending its form uses the link.
struct WebLinkRoute: Sendable {
    let links: WebLinks
    let callers: Callers
    let grants: [String: OAuthProvider]
    let cookie: SessionCookie

    /// The server's own origin, which its form comes from.
    let origin: Origin

    /// The path of the public URL, for example `/am`.
    let basePath: String

    /// How the pages look.
    let design: PageDesign

    let logger: Logger

    /// The path below the public URL's.
    static let path = "/UI/Link"

    /// The one parameter, of the URL and of the form.
    private static let parameter = "id"

    private static let formLimit = 4 << 10

    /// The URL of a link at a server.
    static func url(of link: IssuedWebLink, at server: String) -> String {
        URLText.appending(parameter, link.id.reveal(), to: server + path)
    }

    /// Answers a browser.
    func respond(to request: Request) async -> Response {
        let frame = design.frame(request.headers, below: basePath)
        var response: Response
        do {
            response = try await answer(request, frame)
        } catch let error as RequestError {
            response = SignInMessage(error, again: nil).document(frame).response(error.status)
        } catch {
            logger.error("the page of a link failed", metadata: ["error": "\(type(of: error))"])
            let said = (error as? StoreError).map(EngineError.init) ?? .unavailable
            response = SignInMessage(said.code == .outcomeUnknown ? said : .unavailable, again: nil).document(frame)
                .response(503)
        }
        // The URL signs somebody in: nobody is told of it as the page before.
        response.headers[.referrerPolicy] = "no-referrer"
        return response
    }

    private func answer(_ request: Request, _ frame: PageFrame) async throws -> Response {
        switch request.method {
        case .get, .head:
            guard let secret = Self.secret(in: (request.uri.query ?? "").utf8), let link = try await links.find(secret)
            else { return ended(frame) }
            return try await show(link, secret, request, frame)
        case .post:
            guard isOwnForm(request.headers) else {
                return SignInMessage.foreignForm.document(frame).response(403)
            }
            guard request.isForm else { throw RequestError(415, "The media type must be \(FormEncoding.mediaType).") }
            guard let secret = Self.secret(in: try await request.bytes(upTo: Self.formLimit)) else {
                return ended(frame)
            }
            guard let link = try await links.find(secret) else {
                try await links.noteRepeated(secret)
                return ended(frame)
            }
            let other = try await caller(request, link).session
            guard let token = try await links.use(link, replacing: other) else { return ended(frame) }
            return signedIn(token, link, request)
        default: throw RequestError(405, "This page can only be opened or its form sent.")
        }
    }

    /// Who would be signed in, and whether somebody is already.
    private func show(
        _ link: OpenedWebLink, _ secret: Secret, _ request: Request, _ frame: PageFrame
    ) async throws -> Response {
        let page = WebLinkPage(
            link: link, app: grants[link.user.realm]?.configuration.definition(of: link.clientID)?.name,
            other: WebLinkPage.Other(try await caller(request, link)), language: frame.language)
        return PageDocument(
            title: page.title, body: page.html(action: basePath + Self.path, Self.parameter, secret), frame: frame,
            formTargets: ReturnTarget.formTargets(redirectURI: link.target) ?? []
        ).response()
    }

    /// Whose session the browser has.
    private func caller(_ request: Request, _ link: OpenedWebLink) async throws -> Caller {
        let credentials = PresentedCredentials(sessionOf: request, cookie: cookie, origin: origin.description)
        return try await callers.caller(withSession: credentials, realm: link.user.realm)
    }

    private func signedIn(_ token: Secret, _ link: OpenedWebLink, _ request: Request) -> Response {
        var response = SignInRoute.seeOther(link.target)
        for value in cookie.setting(token, answering: request.headers) {
            response.headers.append(HTTPField(name: .setCookie, value: value))
        }
        return response
    }

    /// One answer to every link that does nothing: why, is nobody's business.
    private func ended(_ frame: PageFrame) -> Response { SignInMessage.linkEnded.document(frame).response(410) }

    /// What the URL or the form has as the link; `nil` without one, with several, and for what cannot be read.
    private static func secret(in form: some Collection<UInt8>) -> Secret? {
        guard form.count <= formLimit,
            let items = try? FormEncoding.parse(Array(form), limits: .init(bytes: formLimit, items: 16)),
            let id = try? items.single(parameter), (1...WebLinks.longestID).contains(id.utf8.count)
        else { return nil }
        return Secret(id)
    }

    /// Whether the form is ours. A page that tells nobody of its URL is not named by its form either: browsers then say
    /// `null`, and whether it is of the same origin in a field that no page can write.
    private func isOwnForm(_ fields: HTTPFields) -> Bool {
        guard fields[values: .origin].count == 1, let named = fields[.origin] else { return false }
        if named == "null" { return fields[values: .secFetchSite] == ["same-origin"] }
        return (try? Origin(headerValue: named)) == origin
    }
}
