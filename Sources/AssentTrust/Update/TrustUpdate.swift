/// How an app gets from the trust file that it was shipped with to the newest one (`docs/trust-file.md`, "Update"): a
/// value that takes an event and returns what is to be done next, without network, vault or clock.
///
/// Every event is allowed in every state: one that makes no sense there changes nothing.
package struct TrustUpdate: Sendable {
    package enum State: Hashable, Sendable, CaseIterable {
        /// The shipped file is in force.
        case shipped
        /// A later one, which is in the vault, is in force.
        case stored
        /// A source was asked for the next version.
        case asked
        /// A later version was verified. It is in force when it is in the vault.
        case verified
        /// The last answers had nothing that verifies, and what was in force stays; or the vault has had a later
        /// version than any that can be read, and nothing is in force.
        case refused
        /// The file in force has expired, and there is no later one.
        case expired
    }

    package enum Event: Sendable {
        /// The vault was read: the file, `nil` when it has none, and the version that was in force.
        case loaded(String?, reached: ReachedVersion? = nil)
        /// It is time to ask.
        case due
        case answered(TrustAnswer)
        /// The verified version is in the vault, or could not be put there: it then holds for this process.
        case kept
        /// Time has passed.
        case passed
    }

    package enum Action: Hashable, Sendable {
        case nothing
        /// Ask for this version: GET, without credential.
        case ask(String)
        /// Put the file into the vault, and say ``Event/kept``.
        case keep(TrustFile)
        /// The file is in force from now on.
        case use(TrustFile)
        /// The round of questions is over, and nothing is new. The reason, when an answer was refused.
        case rest(TrustFileError?)
    }

    /// How many versions one round may go on.
    package static let maximumSteps = 16

    package private(set) var state = State.shipped

    /// The file in force.
    package private(set) var current: TrustFile

    /// Whether a later version was in force than the newest that can be read. Nothing is in force then, until a release
    /// of the app or the sources lead to that version: what it took away could come back else.
    package var isBehind: Bool { current.version < reached }

    /// The highest version that was in force and that no release had brought; 0 when there was none.
    package private(set) var reached = 0

    /// The file that the vault must have; `nil` while the shipped one is the newest.
    package var kept: TrustFile? { current.version > shipped.version ? current : nil }

    private let shipped: TrustFile
    private var round: Round?

    /// One walk through the sources.
    private struct Round {
        /// Those that were not asked yet; the first one is being asked.
        var sources: ArraySlice<String>
        var newest: TrustFile
        var steps = 0
        var refusal: TrustFileError?

        var question: String? {
            guard steps < TrustUpdate.maximumSteps else { return nil }
            return sources.first.map { "\($0)/\(newest.version + 1)" }
        }
    }

    package init(shipped: TrustFile) { (self.shipped, current) = (shipped, shipped) }

    /// Takes an event.
    ///
    /// - Parameters:
    ///   - event: what happened.
    ///   - now: what counts as now, see ``TrustFile/now(_:)``.
    /// - Returns: what is to be done next.
    package mutating func on(_ event: Event, at now: Int) -> Action {
        switch event {
        case .loaded(let text, let reached): load(text, reached, now)
        case .due: begin(now)
        case .answered(let answer): take(answer, now)
        case .kept: adopt(now)
        case .passed: settle(now)
        }
    }

    private mutating func load(_ text: String?, _ reached: ReachedVersion?, _ now: Int) -> Action {
        guard round == nil else { return .nothing }
        let (before, wasBehind) = (current, isBehind)
        // What is for another app or environment belonged to an earlier release of this app.
        if let reached, reached.audience == shipped.audience { self.reached = max(self.reached, reached.version) }
        if let stored = text.flatMap({ try? TrustFile(stored: $0) }), stored.audience == shipped.audience,
            stored.version > current.version
        {
            current = stored
        }
        guard current != before || isBehind != wasBehind else { return settle(now) }
        state = base(now)
        return .use(current)
    }

    private mutating func begin(_ now: Int) -> Action {
        guard round == nil else { return .nothing }
        let next = Round(sources: current.content.source[...], newest: current)
        guard let question = next.question else { return .nothing }
        (round, state) = (next, .asked)
        return .ask(question)
    }

    private mutating func take(_ answer: TrustAnswer, _ now: Int) -> Action {
        guard state == .asked, var round else { return .nothing }
        switch answer {
        case .file(let text):
            do throws(TrustFileError) {
                round.newest = try round.newest.successor(text)
                round.steps += 1
                round.refusal = nil
            } catch {
                round.refusal = error
                round.sources = round.sources.dropFirst()
            }
        case .absent, .failed: round.sources = round.sources.dropFirst()
        }
        if let question = round.question {
            self.round = round
            return .ask(question)
        }
        guard round.newest.version > current.version else {
            self.round = nil
            state = round.refusal == nil || current.hasExpired(at: now) ? base(now) : .refused
            return .rest(round.refusal)
        }
        self.round = round
        state = .verified
        return .keep(round.newest)
    }

    private mutating func adopt(_ now: Int) -> Action {
        guard state == .verified, let newest = round?.newest else { return .nothing }
        (current, round) = (newest, nil)
        if !isBehind { reached = newest.version }
        state = base(current.now(now))
        return .use(current)
    }

    /// A file can expire, and a clock that was ahead can be put right.
    private mutating func settle(_ now: Int) -> Action {
        guard round == nil, !isBehind, current.hasExpired(at: now) != (state == .expired) else { return .nothing }
        state = base(now)
        return .use(current)
    }

    private func base(_ now: Int) -> State {
        if isBehind { return .refused }
        if current.hasExpired(at: now) { return .expired }
        return current.version > shipped.version ? .stored : .shipped
    }
}

/// What a source said.
package enum TrustAnswer: Sendable {
    /// It has the version.
    case file(String)
    /// It has no such version (404).
    case absent
    /// It did not answer, or not as it should.
    case failed
}

extension TrustFile {
    /// See ``now(_:)-(Date)``.
    func now(_ seconds: Int) -> Int { max(seconds, content.issuedAt) }
}
