import AssentEngine
import HTTPTypes
import Hummingbird

/// What the probes of apps have found (docs/resources.md, "Reports to the server").
extension OAuthRoutes {
    /// `reports`.
    func report(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        let body = try await call.body()
        let configuration = call.service.configuration
        guard configuration.takesIntegrityReports else {
            return .oauth(404, "not_found", "The realm takes no reports.")
        }
        guard call.request.headers[.contentType].map(Request.isJSON) == true else {
            throw RequestError(415, "The media type must be application/json.")
        }
        let nonce = try await reports.take(
            body, PresentedProof(call.request, origin: origin, server: .authorizationServer), by: proofs,
            at: call.client.limitKey, in: configuration)
        var response = Response(status: .noContent, headers: [.cacheControl: "no-store"])
        response.give(nonce: nonce)
        return response
    }
}
