import AssentCore
import AssentStore
import Hummingbird

/// `/healthz`: the process answers. `/readyz`: it can serve, its database included.
struct HealthRoutes: Sendable {
    let database: any SQLDatabase

    func respond(_ rule: RouteRule) async -> Response {
        guard rule.path == "readyz" else { return .json(200, ["status": "ok"]) }
        do {
            try await database.checkHealth()
            return .json(200, ["status": "ready"])
        } catch {
            return .json(503, ["status": "the database does not answer"])
        }
    }
}
