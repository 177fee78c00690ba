import AssentCore
import Hummingbird

/// The health of a gateway without an engine, by the paths and words of ``HealthRoutes``. It has a port of its own: all
/// paths of the gateway are those of services.
struct GatewayHealth: RequestHandler {
    /// The certificate that clients see.
    let certificate: CertificateWatch

    /// The realms whose last question the engine did not decide.
    let undecidedRealms: Locked<Set<String>>

    func respond(to request: Request, from client: ClientAddress) async throws -> Response {
        switch request.uri.path {
        case "/healthz": return .json(200, ["status": "ok"])
        case "/readyz":
            // It stays ready while the engine is away: without requests it would not see it come back, and a load
            // balancer that leaves out all gateways answers no better than they do.
            var body: JSONObject = ["status": "ready"]
            if certificate.warning != nil { body["warning"] = "certificate" }
            if undecidedRealms.withLock({ !$0.isEmpty }) { body["warning"] = "engine" }
            return .json(200, .object(body))
        default: return AMError.notFound.response
        }
    }
}
