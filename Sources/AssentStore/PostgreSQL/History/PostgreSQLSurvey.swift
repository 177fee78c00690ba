#if PostgreSQL && os(Linux)
import Foundation

/// A look at all servers of a configuration. It blocks its thread.
struct PostgreSQLSurvey: Sendable {
    /// What is at one host.
    enum Finding: Sendable, Hashable {
        case writable(ServerSighting)
        case standby
        case unreachable(String)
    }

    /// One for each host, in their order.
    let findings: [Finding]

    /// Which of them has everything.
    let choice: ServerChoice

    init(findings: [Finding]) {
        self.findings = findings
        choice = ServerChoice(
            findings.enumerated().compactMap { index, finding in
                if case .writable(let sighting) = finding { (index, sighting) } else { nil }
            })
    }

    /// Looks at the servers.
    init(_ configuration: PostgreSQLConfiguration) {
        self.init(findings: configuration.hosts.map { Self.look($0, configuration) })
    }

    /// What the server that has everything shows.
    var chosen: ServerSighting? {
        if case .host(let index, _) = choice, case .writable(let sighting) = findings[index] { sighting } else { nil }
    }

    private static func look(
        _ host: PostgreSQLConfiguration.Host, _ configuration: PostgreSQLConfiguration
    ) -> Finding {
        var configuration = configuration
        configuration.connectLimit = min(configuration.connectLimit, 2_000)
        configuration.statementLimit = min(configuration.statementLimit, 2_000)
        do {
            let session = try PostgreSQLOpening(configuration: configuration)
                .open(host, bell: PostgreSQLBell())
            guard PostgreSQLOpening.value("in_hot_standby", of: session) == "off" else { return .standby }
            return .writable(try PostgreSQLLook(session: session).sighting())
        } catch let error as StoreError {
            return .unreachable(error.detail)
        } catch let loss as PostgreSQLLoss {
            return .unreachable(loss.error.detail)
        } catch {
            return .unreachable("\(error)")
        }
    }
}
#endif
