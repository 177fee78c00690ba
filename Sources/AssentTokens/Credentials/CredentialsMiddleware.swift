public import AssentCore
import HTTPTypes

/// Gives calls to protected resources the user's access token, session, or both, and renews a token that a resource
/// refuses.
///
/// It is a layer of an ``/AssentCore/HTTPPipeline``, so whatever sends calls through one can use it. Only the origins
/// that it was given get a credential. The calls by which tokens are renewed must not pass it: give the
/// ``TokenManager`` a pipeline without it.
///
/// A safe call (GET, HEAD …) whose access token was refused with status 401 is sent once more with a new token, unless
/// the reply asks for the user's approval or the call says that it ``/AssentCore/HTTPCall/isSentOnce``.
public struct CredentialsMiddleware: HTTPMiddleware {
    private let tokens: TokenManager
    private let resources: [Origin: ResourceAccess]
    private let sessionField: HTTPField.Name?

    /// Credentials of `tokens` for `resources` and for nobody else.
    public init(_ tokens: TokenManager, resources: [Origin: ResourceAccess]) {
        self.tokens = tokens
        self.resources = resources
        sessionField = HTTPField.Name(tokens.configuration.sessionCookieName)
    }

    /// Adds `Authorization`, the session's cookie and its header field, as the origin's ``ResourceAccess`` says. An
    /// `Authorization` that the call brings itself is left alone.
    ///
    /// - Throws: ``TokenError`` when there is no token or no session to send; then nothing was sent.
    public func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
        guard let origin = try? call.origin, let access = resources[origin] else { return try await next.send(call) }
        let (sent, token): (HTTPCall, Secret?)
        do {
            (sent, token) = try await withCredentials(call, access)
        } catch is CancellationError where call.isSentOnce {
            throw HTTPTransportError(.cancelled, "The task was cancelled before the call was sent.")
        }
        var reply = try await next.send(sent)
        guard reply.status == 401, let token, call.mayBeRepeated,
            try await !hasAdvice(&reply, access, limit: call.limits.replyBytes)
        else { return reply }
        let again: HTTPCall
        do {
            again = try await withCredentials(call, access, rejecting: token).0
        } catch let error as TokenError where error.code != .signInNeeded {
            return reply
        }
        return try await next.send(again)
    }

    /// Whether 401 means that the user is wanted, and not that the token is refused.
    private func hasAdvice(_ reply: inout HTTPReply, _ access: ResourceAccess, limit: Int) async throws -> Bool {
        do {
            return try await ReceivedAdvice.find(
                in: &reply, acceptsDecisions: access.acceptsDecisions, limit: limit) != nil
        } catch is WireError {
            return false
        }
    }

    private func withCredentials(
        _ original: HTTPCall, _ access: ResourceAccess, rejecting rejected: Secret? = nil
    ) async throws -> (HTTPCall, Secret?) {
        var call = original
        var used: Secret?
        if access.sendsAccessToken, call.request.headerFields[.authorization] == nil {
            let token = try await tokens.tokens(rejecting: rejected).accessToken
            call.request.headerFields[.authorization] = BearerCredentials.field(token)
            used = token
        }
        if access.sendsSession {
            guard let session = try await tokens.session() else {
                throw TokenError(.signInNeeded, "the user has to sign in", signInReason: .notSignedIn)
            }
            let token = session.token.reveal()
            let others = call.request.headerFields[.cookie].map { "\($0); " } ?? ""
            call.request.headerFields.setCookie("\(others)\(tokens.configuration.sessionCookieName)=\(token)")
            if let sessionField { call.request.headerFields[sessionField] = token }
        }
        return (call, used)
    }
}
