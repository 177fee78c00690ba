#if PostgreSQL && os(Linux)
import Foundation

/// Which of the servers of a configuration is the right one, and whether what it commits is where it has to be.
extension PostgreSQLExamination {
    /// Milliseconds in which a healthy standby confirms a commit many times over.
    private static let confirmationLimit = 2_000

    /// What there is to say about the servers of the configuration, of which `session` leads to one.
    func servers(_ survey: PostgreSQLSurvey, _ session: PostgreSQLSession) throws -> [DatabaseFinding] {
        try hosts(survey) + memory(survey) + replication(session) + room(survey, session)
    }

    private func hosts(_ survey: PostgreSQLSurvey) -> [DatabaseFinding] {
        var findings: [DatabaseFinding] = []
        for (host, finding) in zip(configuration.hosts, survey.findings) where configuration.hosts.count > 1 {
            let name = PostgreSQLOpening.name(host)
            switch finding {
            case .standby: findings.append(DatabaseFinding(isProblem: false, "\(name) is a standby"))
            case .unreachable(let reason): findings.append(DatabaseFinding(isProblem: false, isNote: true, reason))
            case .writable(let sighting):
                let generation = sighting.generations.last?.number ?? 0
                findings.append(
                    DatabaseFinding(
                        isProblem: false,
                        "\(name) accepts writes: timeline \(sighting.incarnation.timeline), generation \(generation)"))
            }
        }
        func names(_ places: [Int]) -> String {
            places.map { PostgreSQLOpening.name(configuration.hosts[$0]) }.joined(separator: ", ")
        }
        switch survey.choice {
        case .nobody: break
        case .conflict(let places):
            findings.append(
                DatabaseFinding(
                    isProblem: true,
                    "Several servers accept writes, and none has everything that the others have: \(names(places)). "
                        + "Stop all but the right one."))
        case .host(let place, let behind):
            for other in behind {
                findings.append(
                    DatabaseFinding(
                        isProblem: true,
                        "\(names([other])) accepts writes and lacks what \(names([place])) has: an old primary, or a "
                            + "copy. Stop it, and bring it back as a standby."))
            }
        }
        return findings
    }

    private func memory(_ survey: PostgreSQLSurvey) throws -> [DatabaseFinding] {
        guard let node = configuration.node, let chosen = survey.chosen else { return [] }
        do {
            guard let memory = try node.memory.read() else { return [] }
            switch memory.judge(chosen, node: node.id) {
            case .accepted: return []
            case .lossy where !configuration.requiresStandby:
                return [
                    DatabaseFinding(
                        isProblem: false, isNote: true,
                        "The database lacks changes that this node saw acknowledged: what was spent may be spent again."
                    )
                ]
            case .lossy, .otherHistory, .copy:
                return [
                    DatabaseFinding(
                        isProblem: true,
                        "The database lacks what this node has seen: an old primary, a copy, or a backup. If you restored "
                            + "it on purpose, run 'assent restore-fence' once and 'assent database adopt' on each node."
                    )
                ]
            }
        } catch {
            return [DatabaseFinding(isProblem: true, error.detail)]
        }
    }

    private func replication(_ session: PostgreSQLSession) throws -> [DatabaseFinding] {
        let look = PostgreSQLLook(session: session)
        let settings = try look.replication()
        var findings: [DatabaseFinding] = []
        if configuration.requiresStandby, settings.standbys.isEmpty {
            findings.append(
                DatabaseFinding(
                    isProblem: true,
                    "requireStandby is true, and synchronous_standby_names is empty: nothing can be written."))
        }
        if ["off", "local", "remote_write"].contains(settings.commits) {
            findings.append(
                DatabaseFinding(
                    isProblem: false,
                    "synchronous_commit is \(settings.commits); Assent uses 'on' for its connections."))
        }
        let patience = try number(
            "SELECT setting::bigint AS number FROM pg_settings WHERE name = 'wal_sender_timeout'", session)
        if !settings.standbys.isEmpty, patience == 0 || patience > 60_000 {
            findings.append(
                DatabaseFinding(
                    isProblem: false, isNote: true,
                    "wal_sender_timeout is \(patience == 0 ? "off" : "\(patience / 1000) s"): a standby that is cut off "
                        + "holds writes up for that long, also if another one could confirm them. Set 10 to 30 s."))
        }
        let waits = try number(Self.waiting, session)
        if waits > 0 {
            findings.append(
                DatabaseFinding(
                    isProblem: true,
                    "\(waits) commits have waited for a standby for more than 5 s, and each keeps a connection. Bring "
                        + "the standby back; never cancel or end a wait for it."))
        }
        if !settings.standbys.isEmpty, try !confirms(session) {
            findings.append(
                DatabaseFinding(
                    isProblem: true,
                    "The server did not confirm a commit within \(Self.confirmationLimit) ms: a standby of "
                        + "synchronous_standby_names does not answer. Bring it back."))
        }
        return findings
    }

    private static let waiting = """
        SELECT count(*) AS number FROM pg_stat_activity
        WHERE wait_event = 'SyncRep' AND clock_timestamp() - state_change > interval '5 s'
        """

    /// Whether all nodes find room, also while the connections that they gave up wait for a standby.
    private func room(_ survey: PostgreSQLSurvey, _ session: PostgreSQLSession) throws -> [DatabaseFinding] {
        guard survey.chosen?.hasTables == true else { return [] }
        let nodes = max(1, try number(Self.nodes, session))
        let most = try number(Self.places, session)
        // Its work, and one connection each for its mark, for what confirms commits, and for its id.
        let own = Int64(configuration.connections) + 3
        guard most < 2 * nodes * own else { return [] }
        return [
            DatabaseFinding(
                isProblem: false, isNote: true,
                "The server has places for \(most) connections. \(nodes) nodes with \(own) each need twice that while a "
                    + "standby is silent: \(2 * nodes * own). Let it allow more (max_connections).")
        ]
    }

    /// Those that have written lately.
    private static let nodes =
        "SELECT count(*) AS number FROM history_marks WHERE at > extract(epoch FROM now())::bigint - 86400"

    private static let places = """
        SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
            AS number
        """

    private func number(_ text: String, _ session: PostgreSQLSession) throws -> Int64 {
        let answer = try session.exchange([PostgreSQLCommand(text)]).first
        if case .failed(let fault) = answer { throw fault.error() }
        return try answer?.rows.first?.integer("number") ?? 0
    }

    /// Commits nothing that stays, over a connection of its own: it may be given up.
    private func confirms(_ session: PostgreSQLSession) throws -> Bool {
        guard let host = session.host else { return true }
        let own = try PostgreSQLOpening(configuration: configuration).open(host, bell: PostgreSQLBell())
        guard PostgreSQLOpening.value("in_hot_standby", of: own) == "off" else { return true }
        try PostgreSQLOpening.demandCommits(own)
        let end = ContinuousClock.now + .milliseconds(Self.confirmationLimit)
        do {
            try PostgreSQLLook(session: own).fence { ContinuousClock.now < end }
            return true
        } catch is PostgreSQLLoss {
            return false
        }
    }
}
#endif
