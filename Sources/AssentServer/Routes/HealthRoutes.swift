import AssentCore
import AssentEngine
import AssentStore
import Hummingbird

/// `/healthz`: the process answers. `/readyz`: it can serve, its database included.
struct HealthRoutes: Sendable {
    let database: any SQLDatabase
    let passwords: Passwords
    let watch: NodeWatch

    /// Answers a request for a path of the server's address; `nil` for other paths. Anybody may ask, by any method.
    func respond(to path: String) async -> Response? {
        switch path {
        case "/healthz": .json(200, ["status": "ok"])
        case "/readyz": await ready()
        default: nil
        }
    }

    private func ready() async -> Response {
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
