import AssentCore
import AssentEngine
import AssentStore
import Hummingbird

/// `/healthz`: the process answers. `/readyz`: it can serve, its database included.
struct HealthRoutes: Sendable {
    let database: any SQLDatabase
    let passwords: Passwords
    let watch: NodeWatch

    func respond(_ rule: RouteRule) async -> Response {
        guard rule.path == "readyz" else { return .json(200, ["status": "ok"]) }
        do {
            if let reason = watch.reason { return .json(503, ["status": .string(reason)]) }
            try await database.checkHealth()
            // A node whose password checks are full stays ready: guesses would else take every node out of service.
            return .json(200, ["status": "ready", "passwordChecks": passwords.load.isFull ? "full" : "free"])
        } catch {
            return .json(503, ["status": "the database does not answer"])
        }
    }
}
