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

    /// Looks at the servers, at each for at most so many milliseconds; `nil` stands for
    /// ``PostgreSQLConfiguration/surveyLimit``.
    init(_ configuration: PostgreSQLConfiguration, limit: Int? = nil) {
        let limit = limit ?? configuration.surveyLimit
        var configuration = configuration
        configuration.connectLimit = min(configuration.connectLimit, limit)
        configuration.statementLimit = min(configuration.statementLimit, limit)
        self.init(findings: configuration.hosts.map { [configuration] in Self.look($0, configuration) })
    }

    /// The host of the server that has everything: for a program that remembers nothing, and takes its time.
    ///
    /// - Throws: ``StoreError``: there is none.
    static func host(of configuration: PostgreSQLConfiguration) throws(StoreError) -> PostgreSQLConfiguration.Host {
        try PostgreSQLSurvey(configuration, limit: .max).host(in: configuration)
    }

    /// What the server that has everything shows.
    var chosen: ServerSighting? {
        if case .host(let index, _) = choice, case .writable(let sighting) = findings[index] { sighting } else { nil }
    }

    /// The host of the server that has everything.
    ///
    /// - Throws: ``StoreError``: there is none.
    func host(in configuration: PostgreSQLConfiguration) throws(StoreError) -> PostgreSQLConfiguration.Host {
        switch choice {
        case .host(let index, _): return configuration.hosts[index]
        case .conflict(let places): throw Self.conflict(places, in: configuration)
        case .nobody:
            let reasons = zip(configuration.hosts, findings).map { host, finding in
                if case .unreachable(let reason) = finding { return reason }
                return "\(PostgreSQLOpening.name(host)) is a standby."
            }
            throw StoreError(.unavailable, reasons.joined(separator: " "), obstacle: .noServer)
        }
    }

    static func conflict(_ places: [Int], in configuration: PostgreSQLConfiguration) -> StoreError {
        StoreError(
            .unavailable,
            """
            Several servers accept writes, and none has everything that the others have: \
            \(names(places, in: configuration)). Nothing is written until you have stopped all but the right one.
            """, obstacle: .serversDiffer)
    }

    /// Hosts by name.
    static func names(_ places: [Int], in configuration: PostgreSQLConfiguration) -> String {
        places.map { PostgreSQLOpening.name(configuration.hosts[$0]) }.joined(separator: ", ")
    }

    private static func look(
        _ host: PostgreSQLConfiguration.Host, _ configuration: PostgreSQLConfiguration
    ) -> Finding {
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
