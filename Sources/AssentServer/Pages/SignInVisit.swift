import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// One request of a browser for the sign-in page, once its query is read.
struct SignInVisit {
    let request: Request
    let wanted: SignInRequest

    /// Where the browser goes in the end.
    let target: ReturnTarget?

    let client: ClientAddress

    /// The path of the sign-in page.
    let path: String

    /// What is around each page.
    let frame: PageFrame

    /// What the request says about the key of its sender.
    let proof: PresentedProof

    /// Whether a proof must have a nonce.
    let noncePolicy: NoncePolicy

    /// A page that only says something.
    func says(_ message: SignInMessage, _ status: Int) -> Response { message.document(frame).response(status) }

    /// What the engine is asked, without a journey and without an answer.
    func step(_ cookie: SessionCookie) -> AuthenticateRequest {
        let fields = request.headers
        var step = AuthenticateRequest(
            realm: wanted.realm, sessionToken: cookie.cookieToken(fields), clientAddress: client.limitKey,
            header: { name in HTTPField.Name(name).flatMap { fields[$0] } })
        step.clientIP = client.ip
        // The page's language first: what is approved stands in it.
        step.languages = [frame.language.tag] + AcceptedLanguages(fields).tags
        step.proof = proof
        step.noncePolicy = noncePolicy
        step.bindsSession = false
        return step
    }

    /// What the engine is asked for the first page.
    func beginning(_ cookie: SessionCookie) -> AuthenticateRequest {
        var step = step(cookie)
        wanted.begin(&step)
        return step
    }

    /// The page's address; with `run`, that of one sign-in.
    func address(_ run: SignInRun? = nil) -> String {
        let query = wanted.query(run)
        return path + (query.isEmpty ? "" : "?\(query)")
    }
}
