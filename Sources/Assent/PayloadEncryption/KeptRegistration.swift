import AssentCore
import AssentTokens

/// Keeps a registration in memory for as long as the pipeline that it is a layer of. An app may keep its signing device
/// alone, and with it only that pipeline. Payload encryption does not keep the registration, and without one the calls
/// would go through the app's sessions instead of the installation's.
struct KeptRegistration: HTTPMiddleware {
    let registration: AppRegistration?

    func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply { try await next.send(call) }
}
