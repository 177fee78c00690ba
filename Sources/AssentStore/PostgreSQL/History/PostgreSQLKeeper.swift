#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import Logging

/// Knows which server a node believes: one at a time, and never one that lacks what the node has seen.
///
/// It looks at all servers when one that is new to it answers, and every few seconds (``PostgreSQLWatch``).
final class PostgreSQLKeeper: Sendable {
    private struct State {
        /// What the node remembers; read from its file at first.
        var memory: NodeMemory?
        var isLoaded = false
        /// The server that is used.
        var current: ServerIncarnation?
        /// Why nothing may be written, although there is a server.
        var refusal: StoreError?
        var survey: (PostgreSQLSurvey, at: ContinuousClock.Instant)?
        var isBusy = false
        /// Whether something was committed since the last mark.
        var hasWritten = false
        /// What was logged already, so that it is logged once.
        var told: Set<String> = []
    }

    /// A survey that is this old is not asked for again.
    private static let surveyIsFresh: Duration = .milliseconds(500)

    let configuration: PostgreSQLConfiguration
    /// By which name this node writes its mark.
    let node: String
    private let commits: PostgreSQLFence
    private let logger: Logger
    private let state = Locked(State())

    init(_ configuration: PostgreSQLConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        node = configuration.node?.id ?? UUID().uuidString.lowercased()
        commits = PostgreSQLFence(configuration)
    }

    /// How a thread gets a connection to the server that is believed.
    var opening: PostgreSQLOpening { PostgreSQLOpening(configuration: configuration, keeper: self) }

    // MARK: - What callers ask

    /// Whether a connection leads to the server that is believed now.
    func isCurrent(_ session: PostgreSQLSession) -> Bool {
        state.withLock { $0.current != nil && $0.current == session.incarnation }
    }

    /// Why nothing may be written now; `nil` if it may.
    var refusal: StoreError? {
        if let refusal = state.withLock({ $0.refusal }) { return refusal }
        return commits.isOverdue ? Self.unconfirmed : nil
    }

    static let unconfirmed = StoreError(
        .unavailable,
        """
        The database server does not confirm what is committed: a synchronous standby does not answer. Nothing has \
        changed. Bring the standby back; never cancel or end a wait for it.
        """)

    /// Blocks the thread until the connection's server has confirmed a commit that began after this call.
    func fence(_ session: PostgreSQLSession, until end: ContinuousClock.Instant) -> Bool {
        guard let incarnation = session.incarnation, let host = session.host else { return false }
        return commits.pass(incarnation, at: host, until: end)
    }

    /// A `COMMIT` over this connection was not answered in time.
    func doubt(_ session: PostgreSQLSession) {
        if let incarnation = session.incarnation, let host = session.host { commits.request(incarnation, at: host) }
    }

    /// Something was committed: the mark has to grow.
    func committed() { state.withLock { $0.hasWritten = true } }

    /// Lets connections be opened anew, as if the server were another one.
    func forgetCurrent() { state.withLock { $0.current = nil } }

    /// Gives up what is waited for.
    func end() { commits.end() }

    // MARK: - A connection that was opened

    /// Lets a connection serve, or refuses it: its server may be an old one, a copy, or one that confirms nothing.
    ///
    /// - Throws: ``StoreError`` or ``PostgreSQLLoss``.
    func admit(_ session: PostgreSQLSession) throws {
        let look = PostgreSQLLook(session: session)
        var sighting = try look.sighting()
        session.incarnation = sighting.incarnation
        try refuseUnreplicated(look)
        if isCurrent(session), !sighting.hasTables || !sighting.lacksGeneration { return }
        // One thread at a time makes up its mind; the others see what it has found.
        while state.withLock({ state in
            if state.isBusy { return true }
            state.isBusy = true
            return false
        }) { _ = poll(nil, 0, 5) }
        defer { state.withLock { $0.isBusy = false } }
        // What was seen before the wait may lack what another thread has written meanwhile.
        sighting = try look.sighting()
        if isCurrent(session), !sighting.hasTables || !sighting.lacksGeneration { return }
        try load()
        try compareWithOthers(sighting)
        if sighting.hasTables || memory != nil { try judge(sighting) }
        try confirm(session)
        guard sighting.hasTables else {
            state.withLock { $0.current = sighting.incarnation }
            return
        }
        if sighting.lacksGeneration || configuration.adoptsHistory && memory == nil {
            sighting = try look.addGeneration(
                after: sighting, isRestored: configuration.adoptsHistory, limit: configuration.commitLimit)
            if let generation = sighting.generations.last {
                logger.notice(
                    "the database begins a generation: another server, or a restored backup",
                    metadata: ["generation": "\(generation.number)", "timeline": "\(generation.timeline)"])
            }
        }
        try remember(sighting)
    }

    private var memory: NodeMemory? { state.withLock { $0.memory } }

    /// Reads what was remembered before the last start.
    private func load() throws(StoreError) {
        guard !state.withLock({ $0.isLoaded }) else { return }
        let memory = configuration.adoptsHistory ? nil : try configuration.node?.memory.read()
        state.withLock { state in
            state.memory = memory
            state.isLoaded = true
        }
    }

    private func refuseUnreplicated(_ look: PostgreSQLLook) throws {
        guard configuration.requiresStandby, try !look.replication().isDemanded else { return }
        throw StoreError(
            .unavailable,
            """
            The configuration requires a synchronous standby, and the server has none in synchronous_standby_names. \
            Name one there, or remove requireStandby if a fail-over may lose the latest commits.
            """)
    }

    /// Looks at all servers when one of them is new.
    private func compareWithOthers(_ sighting: ServerSighting) throws(StoreError) {
        guard configuration.hosts.count > 1 else { return }
        let survey = survey()
        note(survey)
        if case .conflict(let hosts) = survey.choice { throw conflict(hosts) }
        guard let chosen = survey.chosen, chosen.incarnation != sighting.incarnation else { return }
        throw StoreError(
            .unavailable, "Another server has what this one lacks. Keep the old server down until it is a standby.")
    }

    private func judge(_ sighting: ServerSighting) throws(StoreError) {
        guard let memory else { return }
        switch memory.judge(sighting, node: node) {
        case .accepted: return
        case .lossy where !configuration.requiresStandby:
            logger.error(
                """
                the database lacks changes that were acknowledged: a fail-over or a restore has lost them, so what was \
                spent may be spent again
                """,
                metadata: ["generation": "\(sighting.generations.last?.number ?? 0)", "mark": "\(memory.mark)"])
        case .lossy:
            throw StoreError(
                .unavailable,
                """
                The database lacks changes that were acknowledged, and the configuration requires that none is lost. \
                Bring the standby back that has them; if you accept the loss, run 'assent database adopt' on each node.
                """)
        case .otherHistory:
            throw StoreError(
                .unavailable,
                """
                The database is older than what this node has used, or another one: an old primary, or a backup. If \
                you restored it on purpose, run 'assent restore-fence' once and 'assent database adopt' on each node.
                """)
        case .copy:
            throw StoreError(
                .unavailable,
                """
                The database lacks what this node has written: it is a copy of the right one, or a restored backup. If \
                you restored it on purpose, run 'assent restore-fence' once.
                """)
        }
    }

    /// After its start a server shows what no standby may have.
    private func confirm(_ session: PostgreSQLSession) throws {
        guard let incarnation = session.incarnation, !commits.hasPassed(incarnation) else { return }
        guard fence(session, until: .now + .milliseconds(configuration.outcomeLimit)) else { throw Self.unconfirmed }
    }

    /// From here on the server is believed, and none that lacks what it has.
    private func remember(_ sighting: ServerSighting) throws(StoreError) {
        guard let latest = sighting.generations.last, !sighting.lacksGeneration else {
            throw StoreError(.unavailable, "The server does not keep which generation it is.")
        }
        let known = memory
        let memory = NodeMemory(generation: latest.number, token: latest.token, mark: sighting.marks[node] ?? 0)
        if memory != known { try configuration.node?.memory.write(memory) }
        state.withLock { state in
            state.memory = memory
            state.current = sighting.incarnation
            state.refusal = nil
        }
    }

    // MARK: - All servers

    private func survey() -> PostgreSQLSurvey {
        if let (survey, at) = state.withLock({ $0.survey }), ContinuousClock.now - at < Self.surveyIsFresh {
            return survey
        }
        let survey = PostgreSQLSurvey(configuration)
        state.withLock { $0.survey = (survey, .now) }
        return survey
    }

    /// Looks at all servers, and stops using one that lacks what another one has.
    func watch() {
        guard configuration.hosts.count > 1, state.withLock({ $0.current != nil }) else { return }
        let survey = survey()
        note(survey)
        switch survey.choice {
        case .nobody: return
        case .conflict(let hosts):
            let refusal = conflict(hosts)
            state.withLock { $0.refusal = refusal }
        case .host:
            state.withLock { state in
                state.refusal = nil
                // The next connection finds out whether it is to be believed.
                if let chosen = survey.chosen, chosen.incarnation != state.current { state.current = nil }
            }
        }
    }

    private func conflict(_ hosts: [Int]) -> StoreError {
        StoreError(
            .unavailable,
            """
            Several servers accept writes, and none has everything that the others have: \(names(hosts)). Nothing is \
            written until you have stopped all but the right one.
            """)
    }

    /// Logs what an operator has to know, once.
    private func note(_ survey: PostgreSQLSurvey) {
        var found: Set<String> = []
        switch survey.choice {
        case .nobody: break
        case .conflict(let hosts):
            found.insert("several database servers accept writes, and none has everything: \(names(hosts))")
        case .host(_, let behind):
            for host in behind {
                found.insert(
                    "a database server accepts writes and lacks what another one has; stop it: \(names([host]))")
            }
        }
        let news = state.withLock { state in
            defer { state.told = found }
            return found.subtracting(state.told)
        }
        for text in news.sorted() { logger.error("\(text)") }
    }

    private func names(_ hosts: [Int]) -> String {
        hosts.map { PostgreSQLOpening.name(configuration.hosts[$0]) }.joined(separator: ", ")
    }

    // MARK: - The mark

    /// Whether something was committed since the last mark.
    var wantsMark: Bool { state.withLock { $0.hasWritten } }

    /// Writes this node's mark if something was committed since the last one, so that a copy of the server from before
    /// is told from it.
    func mark(over session: PostgreSQLSession) throws {
        guard isCurrent(session), refusal == nil, let memory, state.withLock({ $0.hasWritten }) else { return }
        state.withLock { $0.hasWritten = false }
        let mark = memory.mark + 1
        do {
            try PostgreSQLLook(session: session).write(mark: mark, of: node, limit: configuration.commitLimit)
        } catch {
            state.withLock { $0.hasWritten = true }
            if let loss = error as? PostgreSQLLoss, loss.isSilence { doubt(session) }
            throw error
        }
        let grown = state.withLock { state -> NodeMemory? in
            guard state.current == session.incarnation, state.memory?.generation == memory.generation else {
                return nil
            }
            state.memory?.mark = mark
            return state.memory
        }
        if let grown { try configuration.node?.memory.write(grown) }
    }
}
#endif
