import AssentCore
import AssentTokens

/// Keeps a registration as long as a way to the network that an app may keep alone, as that of a signing device is.
/// Payload encryption does not keep it itself, and without it calls would go through the app's sessions instead of the
/// installation's.
struct KeptRegistration: HTTPMiddleware {
    let registration: AppRegistration?

    func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply { try await next.send(call) }
}
