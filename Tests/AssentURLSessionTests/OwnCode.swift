import AssentCore
import AssentTokens

/// A source of tokens and a layer of an app's own, which say when they run.
struct OwnCode: AccessTokenSource, HTTPMiddleware {
    private let note: @Sendable () -> Void

    init(_ note: @escaping @Sendable () -> Void) { self.note = note }

    var kind: CallKind { .user }

    func token(rejecting rejected: Secret?) async throws -> AccessToken? {
        note()
        return AccessToken(bearer: Secret("OWN"))
    }

    func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
        note()
        return try await next.send(call)
    }
}
