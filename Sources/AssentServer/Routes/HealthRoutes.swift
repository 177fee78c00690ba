import AssentCore
import AssentEngine
import AssentStore
import Hummingbird

/// `/healthz`: the process answers. `/readyz`: it can serve, its database included.
struct HealthRoutes: Sendable {
    let database: any SQLDatabase
    let passwords: Passwords
    let watch: NodeWatch
    /// The certificate that clients see, where one is watched.
    var certificate: CertificateWatch?

    /// Answers a request for a path of the server's address; `nil` for other paths. Anybody may ask, by any method.
    func respond(to path: String) async -> Response? {
        switch path {
        case "/healthz": return .json(200, ["status": "ok"])
        case "/readyz":
            let (status, body) = await readiness()
            return .json(status, .object(body))
        default: return nil
        }
    }

    /// The answer of `/readyz`.
    func readiness() async -> (status: Int, body: JSONObject) {
        if let reason = await obstacle {
            return (503, ["status": .string(reason.text), "reason": .string(reason.rawValue)])
        }
        // A node whose password checks are full stays ready: guesses would else take every node out of service.
        var body: JSONObject = ["status": "ready", "passwordChecks": passwords.load.isFull ? "full" : "free"]
        if certificate?.warning != nil { body["warning"] = "certificate" }
        if database.notices.serversBehind > 0 { body["warning"] = "serverBehind" }
        return (200, body)
    }

    /// Why the node is not ready; `nil` if it is.
    private var obstacle: NotReady? {
        get async {
            if let reason = watch.reason { return reason }
            do {
                try await database.checkHealth()
                return nil
            } catch {
                return NotReady(error)
            }
        }
    }
}
