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
        /// The last answers had nothing that verifies; what was in force stays.
        case refused
        /// The file in force has expired, and there is no later one.
        case expired
    }

    package enum Event: Sendable {
        /// The vault was read; `nil` when it has no trust file.
        case loaded(String?)
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

    /// Whether what the vault has cannot be read. Nothing is in force then: an older version could come back else.
    package private(set) var isDamaged = false

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
        case .loaded(let text): load(text, now)
        case .due: begin(now)
        case .answered(let answer): take(answer, now)
        case .kept: adopt(now)
        case .passed: settle(now)
        }
    }

    private mutating func load(_ text: String?, _ now: Int) -> Action {
        guard round == nil, !isDamaged else { return .nothing }
        guard let text else { return settle(now) }
        guard let stored = try? TrustFile(stored: text) else {
            isDamaged = true
            state = .refused
            return .use(current)
        }
        // One that is for another app or environment belonged to an earlier release of this app.
        guard stored.audience == shipped.audience, stored.version > current.version else { return settle(now) }
        current = stored
        state = base(now)
        return .use(current)
    }

    private mutating func begin(_ now: Int) -> Action {
        guard round == nil, !isDamaged else { return .nothing }
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
        state = base(current.now(now))
        return .use(current)
    }

    /// A file can expire, and a clock that was ahead can be put right.
    private mutating func settle(_ now: Int) -> Action {
        guard round == nil, !isDamaged, current.hasExpired(at: now) != (state == .expired) else { return .nothing }
        state = base(now)
        return .use(current)
    }

    private func base(_ now: Int) -> State {
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
