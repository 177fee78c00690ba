#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import Logging

/// Knows which server a node believes: one at a time, and never one that lacks what the node has seen.
///
/// It looks at all servers when one that is new to it answers, and every few seconds (``PostgreSQLWatch``).
final class PostgreSQLKeeper: Sendable {
    private struct State {
        var belief: ServerBelief
        var isLoaded = false
        var survey: (PostgreSQLSurvey, at: ContinuousClock.Instant)?
        var isBusy = false
        /// Whether something was committed since the last mark.
        var hasWritten = false
        /// The latest generation that began without changes that were acknowledged.
        var lossyGeneration: Int64?
        /// What was logged already, so that it is logged once.
        var told: Set<String> = []
        /// Whether the latest mark could not be kept on the node's own disk.
        var isMarkUnkept = false
    }

    /// A survey that is this old is not asked for again.
    private static let surveyIsFresh: Duration = .milliseconds(500)

    let configuration: PostgreSQLConfiguration
    /// By which name this node writes its mark.
    let node: String
    private let commits: PostgreSQLFence
    private let writer: NodeMemoryWriter
    private let logger: Logger
    private let state: Locked<State>

    init(_ configuration: PostgreSQLConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        node = configuration.node?.id ?? UUID().uuidString.lowercased()
        state = Locked(State(belief: ServerBelief(node: node, requiresStandby: configuration.requiresStandby)))
        commits = PostgreSQLFence(configuration)
        writer = NodeMemoryWriter(configuration.node?.memory)
    }

    /// How a thread gets a connection to the server that is believed.
    var opening: PostgreSQLOpening { PostgreSQLOpening(configuration: configuration, keeper: self) }

    // MARK: - What callers ask

    /// Whether a connection leads to the server that is believed now, and what it shows is where it has to be.
    func isCurrent(_ session: PostgreSQLSession) -> Bool {
        guard let incarnation = session.incarnation, isUsed(incarnation) else { return false }
        return commits.hasPassed(incarnation)
    }

    /// Whether that server is the one that is used, also while it has to confirm what it shows.
    func isUsed(_ incarnation: ServerIncarnation?) -> Bool {
        state.withLock { incarnation != nil && $0.belief.current == incarnation }
    }

    /// Why nothing may be written now; `nil` if it may.
    var refusal: StoreError? { conflict ?? (commits.isOverdue ? Self.unconfirmed : nil) }

    /// Why not even what a crash may take may be written now; `nil` if it may. No standby has to confirm that.
    var conflict: StoreError? {
        let hosts = state.withLock { $0.belief.conflict }
        return hosts.isEmpty ? nil : error(.conflict(hosts))
    }

    static let unconfirmed = StoreError(
        .unavailable,
        """
        The database server does not confirm what is committed: a synchronous standby does not answer. Nothing has \
        changed. Bring the standby back; never cancel or end a wait for it.
        """, obstacle: .standbySilent)

    /// What an operator has to know although everything goes on.
    var notices: DatabaseNotices {
        state.withLock { DatabaseNotices(serversBehind: $0.belief.behind, lossyGeneration: $0.lossyGeneration) }
    }

    /// Blocks the thread until the connection's server has confirmed a commit that began after this call, or the time
    /// is over. Returns whether it is confirmed.
    ///
    /// - Throws: ``StoreError``: the server was started again, or another one is used now.
    func fence(_ session: PostgreSQLSession, until end: ContinuousClock.Instant) throws(StoreError) -> Bool {
        guard let incarnation = session.incarnation, let host = session.host else { return false }
        return try commits.pass(incarnation, at: host, until: end)
    }

    /// A `COMMIT` over this connection was lost: it is not known whether it is where it has to be.
    ///
    /// After silence it still waits for a standby, and nobody sees it. But a wait that was cut short, as by an
    /// administrator or the end of the server's process, has made it visible: then nothing is read any more until the
    /// server has confirmed a later commit.
    func doubt(_ session: PostgreSQLSession, isVisible: Bool) {
        guard let incarnation = session.incarnation, let host = session.host else { return }
        guard isUsed(incarnation) else {
            // Another server is used by now: nobody would end a wait for the old one.
            if isVisible { commits.distrust(incarnation) }
            return
        }
        if isVisible {
            commits.distrust(incarnation, at: host)
        } else {
            commits.request(incarnation, at: host)
        }
    }

    /// Something was committed: the mark has to grow.
    func committed() { state.withLock { $0.hasWritten = true } }

    /// Lets connections be opened anew, as if the server were another one.
    func forgetCurrent() { state.withLock { $0.belief.forgetCurrent() } }

    /// Gives up what is waited for.
    func end() { commits.end() }

    // MARK: - A connection that was opened

    /// Lets a connection serve, or refuses it: its server may be an old one, a copy, or one that confirms nothing.
    ///
    /// - Parameters:
    ///   - session: the connection.
    ///   - end: how long the server may take to confirm a commit; `nil` for as long as callers wait.
    /// - Throws: ``StoreError`` or ``PostgreSQLLoss``.
    func admit(_ session: PostgreSQLSession, until end: ContinuousClock.Instant? = nil) throws {
        try load()
        let look = PostgreSQLLook(session: session)
        if try isKnown(look) { return try confirm(session, until: end) }
        // One thread at a time makes up its mind; the others see what it has found.
        while state.withLock({ state in
            if state.isBusy { return true }
            state.isBusy = true
            return false
        }) { _ = poll(nil, 0, 5) }
        defer { state.withLock { $0.isBusy = false } }
        // What was seen before the wait may lack what another thread has written meanwhile.
        if try isKnown(look) { return try confirm(session, until: end) }
        try admitUnknown(look, until: end)
    }

    /// Whether a server is the one that is used, and shows nothing new.
    private func isKnown(_ look: PostgreSQLLook) throws -> Bool {
        // Before the server is asked: what is remembered by then, it has to show.
        let memory = memory
        let sighting = try look.sighting()
        look.session.incarnation = sighting.incarnation
        try refuseUnreplicated(look)
        do {
            guard
                try state.withLock({ $0.belief })
                    .isKnown(sighting, remembering: memory)
            else { return false }
        } catch {
            // No connection to it is to be believed any more.
            forgetCurrent()
            throw self.error(error)
        }
        return true
    }

    private func admitUnknown(_ look: PostgreSQLLook, until end: ContinuousClock.Instant?) throws {
        var sighting = try look.sighting()
        let belief = state.withLock { $0.belief }
        let survey = configuration.hosts.count > 1 ? survey() : nil
        if let survey { note(survey) }
        let isLossy: Bool
        do {
            isLossy = try belief.judge(
                sighting, among: survey?.choice ?? .nobody, chosen: survey?.chosen?.incarnation)
        } catch {
            throw self.error(error)
        }
        try confirm(look.session, until: end)
        guard sighting.hasTables else {
            use(sighting, remembering: nil)
            return
        }
        if sighting.lacksGeneration || configuration.adoptsHistory && belief.memory == nil {
            sighting = try look.addGeneration(
                after: sighting, isRestored: configuration.adoptsHistory, limit: configuration.commitLimit)
            if let generation = sighting.generations.last {
                logger.notice(
                    "the database begins a generation: another server, or a restored backup",
                    metadata: ["generation": "\(generation.number)", "timeline": "\(generation.timeline)"])
            }
        }
        try use(sighting)
        if isLossy { noteLoss(sighting) }
    }

    private var memory: NodeMemory? { state.withLock { $0.belief.memory } }

    /// Reads what was remembered before the last start.
    private func load() throws(StoreError) {
        guard !state.withLock({ $0.isLoaded }) else { return }
        let memory = configuration.adoptsHistory ? nil : try configuration.node?.memory.read()
        state.withLock { state in
            // Another thread may have been faster, and gone on from there.
            guard !state.isLoaded else { return }
            state.belief.remember(memory)
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
            """, obstacle: .standbyNotNamed)
    }

    private func noteLoss(_ sighting: ServerSighting) {
        logger.error(
            """
            the database lacks changes that were acknowledged: a fail-over or a restore has lost them, so what was \
            spent may be spent again
            """, metadata: ["generation": "\(sighting.generations.last?.number ?? 0)"])
        state.withLock { $0.lossyGeneration = sighting.generations.last?.number }
    }

    /// After its start, or after a wait for a standby was cut short, a server shows what no standby may have.
    private func confirm(_ session: PostgreSQLSession, until end: ContinuousClock.Instant?) throws {
        guard let incarnation = session.incarnation, !commits.hasPassed(incarnation) else { return }
        // Those who wait for the connection are then told why, and not only that it comes late.
        let limit = ContinuousClock.now + .milliseconds(min(configuration.commitLimit, configuration.waitLimit * 4 / 5))
        guard try !commits.isOverdue(incarnation) && fence(session, until: min(limit, end ?? limit)) else {
            throw Self.unconfirmed
        }
    }

    /// From here on the server is believed, and none that lacks what it has.
    private func use(_ sighting: ServerSighting) throws(StoreError) {
        let memory: NodeMemory
        do {
            memory = try state.withLock { $0.belief }.memory(of: sighting)
        } catch {
            throw self.error(error)
        }
        try writer.alone { (file: NodeMemoryFile?) throws(StoreError) in
            if memory != self.memory { try file?.write(memory) }
            use(sighting, remembering: memory)
        }
    }

    private func use(_ sighting: ServerSighting, remembering memory: NodeMemory?) {
        state.withLock { $0.belief.use(sighting.incarnation, remembering: memory) }
        commits.settle(on: sighting.incarnation)
    }

    /// What the caller is told.
    private func error(_ refusal: ServerRefusal) -> StoreError {
        switch refusal {
        case .conflict(let hosts): PostgreSQLSurvey.conflict(hosts, in: configuration)
        case .behind:
            StoreError(
                .unavailable,
                "Another server has what this one lacks. Keep the old server down until it is a standby.",
                obstacle: .serverRefused)
        case .lossy:
            StoreError(
                .unavailable,
                """
                The database lacks changes that were acknowledged, and the configuration requires that none is lost. \
                Bring the standby back that has them; if you accept the loss, run 'assent database adopt' on each node.
                """, obstacle: .serverRefused)
        case .otherHistory:
            StoreError(
                .unavailable,
                """
                The database is older than what this node has used, or another one: an old primary, or a backup. If \
                you restored it on purpose, run 'assent restore-fence' once and 'assent database adopt' on each node.
                """, obstacle: .serverRefused)
        case .copy:
            StoreError(
                .unavailable,
                """
                The database lacks what this node has written: it is a copy of the right one, or a restored backup. If \
                you restored it on purpose, run 'assent restore-fence' once.
                """, obstacle: .serverRefused)
        case .forgetful:
            StoreError(
                .unavailable, "The server does not keep which generation it is.", obstacle: .serverRefused)
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
        let before = state.withLock { $0.belief }
        guard commits.isOverdue || configuration.hosts.count > 1 && before.current != nil else { return }
        let survey = survey()
        note(survey)
        let chosen = survey.chosen
        let isSeen = state.withLock { state in
            // Who has opened a connection meanwhile knows better.
            guard state.belief.current == before.current else { return false }
            state.belief.see(survey.choice, chosen: chosen?.incarnation)
            return true
        }
        // Those who still wait for another one would wait until their time is over, and keep everybody from writing.
        if isSeen, let chosen,
            (try? before.judge(chosen, among: survey.choice, chosen: chosen.incarnation)) != nil
        {
            commits.settle(on: chosen.incarnation)
        }
    }

    /// Logs what an operator has to know, once.
    private func note(_ survey: PostgreSQLSurvey) {
        var found: Set<String> = []
        switch survey.choice {
        case .nobody: break
        case .conflict(let hosts):
            found.insert(
                "several database servers accept writes, and none has everything: \(PostgreSQLSurvey.names(hosts, in: configuration))"
            )
        case .host(_, let behind):
            for host in behind {
                found.insert(
                    "a database server accepts writes and lacks what another one has; stop it: \(PostgreSQLSurvey.names([host], in: configuration))"
                )
            }
        }
        let news = state.withLock { state in
            defer { state.told = found }
            return found.subtracting(state.told)
        }
        for text in news.sorted() { logger.error("\(text)") }
    }

    // MARK: - The mark

    /// Whether something was committed since the last mark.
    var wantsMark: Bool { state.withLock { $0.hasWritten } }

    /// Writes this node's mark if something was committed since the last one, so that a copy of the server from before
    /// is told from it.
    func mark(over session: PostgreSQLSession) throws {
        guard isUsed(session.incarnation), refusal == nil, let memory, state.withLock({ $0.hasWritten }) else { return }
        state.withLock { $0.hasWritten = false }
        let mark = memory.mark + 1
        do {
            try PostgreSQLLook(session: session).write(mark: mark, of: node, limit: configuration.commitLimit)
        } catch {
            state.withLock { $0.hasWritten = true }
            if let loss = error as? PostgreSQLLoss { doubt(session, isVisible: !loss.isSilence) }
            throw error
        }
        do {
            try writer.alone { (file: NodeMemoryFile?) throws(StoreError) in
                let grown = state.withLock {
                    $0.belief.acknowledge(mark: mark, of: memory.generation, by: session.incarnation)
                }
                if let grown { try file?.write(grown) }
            }
        } catch {
            noteUnkept(error)
            throw error
        }
        state.withLock { $0.isMarkUnkept = false }
    }

    /// The node's own disk has not taken the mark. Another one is written until it does.
    private func noteUnkept(_ error: StoreError) {
        let wasUnkept = state.withLock { state in
            state.hasWritten = true
            defer { state.isMarkUnkept = true }
            return state.isMarkUnkept
        }
        if wasUnkept { return }
        logger.error(
            """
            this node cannot keep what it has seen of the database, and may take a backup for the right one after a \
            restart: look at the disk of its data directory
            """, metadata: ["error": "\(error.detail)"])
    }
}
#endif
