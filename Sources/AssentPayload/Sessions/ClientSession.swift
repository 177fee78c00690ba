package import Foundation

/// What a client does for its calls to one origin, without I/O: one handshake for all that wait, a number for each
/// message, and what follows from each answer (docs/payload-encryption.md, "What a client does with each answer").
///
/// A call ends with one of `handOver`, `repeatAbove` and `giveUp`, or because it was cancelled.
package struct ClientSession: Sendable {
    /// After so many seconds without a request a client makes a new session. The server ends one after 600: a request
    /// that comes too late for that would have an unknown outcome for nothing.
    package static let idleLimit: TimeInterval = 480
    /// The most calls that wait for one handshake.
    package static let waitingLimit = 1024
    /// How often one attempt waits for a server that is busy, and for how many seconds.
    static let pauseLimit = 3
    static let pauseSeconds = 1...30

    private enum Phase: Sendable {
        case none
        case handshake(Attempt)
        case pausing(Attempt)
        case registration(Attempt)
        case live(Live)
    }

    /// What was tried for the calls that wait now.
    private struct Attempt: Sendable {
        var key: PayloadKey
        var begun: Date
        var tried: Set<PayloadKey> = []
        var pauses = 0
        var hasNonce = false
        var hasRegistration = false
    }

    private struct Live: Sendable {
        let key: PayloadKey
        let keys: SessionKeys
        let begun: Date
        let expires: Date
        var lastUse: Date
        var next: UInt64 = 1
    }

    private struct Sent: Sendable {
        let call: Call
        let session: Int
    }

    private let role: PayloadPeer.Role
    private var keys: [Key]
    /// The key that the server took last.
    private var preferred: PayloadKey?
    private var phase = Phase.none
    private var sessions = 0
    private var attempts = 0
    private var waiting: [Call] = []
    private var sent: [Int: Sent] = [:]

    /// No session yet; the server's keys are tried in this order.
    package init(role: PayloadPeer.Role, keys: [Key]) { (self.role, self.keys) = (role, keys) }

    /// The number of calls that wait for a session, or for a reply.
    package var pending: Int { waiting.count + sent.count }

    /// Takes an event. `now` is of a clock that nobody turns back.
    ///
    /// - Returns: what is to be done, in this order. Nothing for an event that does not belong here any more.
    package mutating func take(_ event: Event, at now: Date) -> [Action] {
        switch event {
        case .begin(let call): return begin(call, at: now)
        case .cancelled(let id):
            waiting.removeAll { $0.id == id }
            sent[id] = nil
            return []
        case .answer(let id, let answer): return self.answer(id, answer, at: now)
        case .handshake(let attempt, let result):
            guard case .handshake(let current) = phase, attempt == attempts else { return [] }
            return handshake(current, result, at: now)
        case .paused:
            guard case .pausing(let attempt) = phase else { return [] }
            guard !waiting.isEmpty else { return end() }
            return handshake(attempt, at: now)
        case .registration(let registration):
            guard case .registration(let attempt) = phase else { return [] }
            return self.registration(attempt, registration, at: now)
        case .keys(let keys): return use(keys, at: now)
        }
    }

    // MARK: Calls

    private mutating func begin(_ call: Call, at now: Date) -> [Action] {
        guard sent[call.id] == nil, !waiting.contains(where: { $0.id == call.id }) else { return [] }
        if let message = message(for: call, at: now) { return [.send(call.id, message)] }
        if case .live = phase { phase = .none }
        guard waiting.count < Self.waitingLimit else {
            return [.giveUp(call.id, Failure(reason: .tooMany, mayHaveHadEffect: false))]
        }
        waiting.append(call)
        guard case .none = phase else { return [.wait(call.id)] }
        let actions = start(at: now)
        // Without a key the call has ended already.
        return waiting.isEmpty ? actions : actions + [.wait(call.id)]
    }

    /// Begins a call where there is a session for it: what it is sealed with. As ``take(_:at:)`` of `begin`, but `nil`
    /// for a call that has to wait, of which nothing is known then.
    package mutating func message(for call: Call, at now: Date) -> Message? {
        guard case .live(var live) = phase, !Self.isOver(live, at: now), sent[call.id] == nil else { return nil }
        let message = message(for: call, &live, at: now)
        phase = .live(live)
        return message
    }

    /// Takes the sealed reply to a call. As ``take(_:at:)`` of that answer, from which nothing follows but that the
    /// reply is handed over: each sealed call ends so.
    package mutating func takeSealedReply(to id: Int) { sent[id] = nil }

    private mutating func message(for call: Call, _ live: inout Live, at now: Date) -> Message {
        let message = Message(
            session: sessions, number: live.next, begun: live.begun, keys: live.keys)
        live.next += 1
        live.lastUse = now
        sent[call.id] = Sent(call: call, session: sessions)
        return message
    }

    private static func isOver(_ live: Live, at now: Date) -> Bool {
        now < live.begun || now >= live.expires || now.timeIntervalSince(live.lastUse) >= idleLimit
            || live.next == .max
    }

    private mutating func answer(_ id: Int, _ answer: Answer, at now: Date) -> [Action] {
        guard let sent = sent.removeValue(forKey: id) else { return [] }
        switch answer {
        case .sealed: return [.handOver(id)]
        case .other, .staleConnection: return [again(sent.call, .noReply)]
        case .notSent: return [.giveUp(id, Failure(reason: .notConnected, mayHaveHadEffect: false))]
        case .unknownSession:
            // Somebody else may have made a new one since.
            guard case .live = phase, sent.session == sessions else { return [again(sent.call, .unknownSession)] }
            phase = .none
            return start(at: now) + [again(sent.call, .unknownSession)]
        }
    }

    private func again(_ call: Call, _ reason: Failure.Reason) -> Action {
        call.mayRepeat
            ? .repeatAbove(call.id) : .giveUp(call.id, Failure(reason: reason, mayHaveHadEffect: true))
    }

    // MARK: Handshakes

    private mutating func start(at now: Date) -> [Action] {
        let valid = keys.filter { now < $0.notAfter }.map(\.key)
        guard let key = valid.first(where: { $0 == preferred }) ?? valid.first else { return end(.noKey) }
        return handshake(Attempt(key: key, begun: now), at: now)
    }

    private mutating func handshake(_ attempt: Attempt, at now: Date) -> [Action] {
        var attempt = attempt
        attempt.begun = now
        attempts += 1
        phase = .handshake(attempt)
        return [.handshake(attempt: attempts, attempt.key)]
    }

    private mutating func handshake(_ attempt: Attempt, _ result: HandshakeResult, at now: Date) -> [Action] {
        switch result {
        case .agreed(let secrets, let expires): return agreed(attempt, secrets, expires, at: now)
        case .notConfirmed: return end(.notConfirmed)
        case .noAnswer: return end(.noHandshake)
        case .refused(let refusal, let retryAfter):
            var attempt = attempt
            switch refusal {
            case .unknownKey:
                attempt.tried.insert(attempt.key)
                let next = keys.first { now < $0.notAfter && !attempt.tried.contains($0.key) }
                guard let next else { return end(.noKey) }
                attempt.key = next.key
                return handshake(attempt, at: now)
            case .badProof:
                guard role == .device, !attempt.hasRegistration else { return end(.proofRefused) }
                attempt.hasRegistration = true
                phase = .registration(attempt)
                return [.readRegistration]
            case .useNonce:
                guard role == .device, !attempt.hasNonce else { return end(.proofRefused) }
                attempt.hasNonce = true
                return handshake(attempt, at: now)
            case .busy:
                guard attempt.pauses < Self.pauseLimit else { return end(.busy) }
                attempt.pauses += 1
                phase = .pausing(attempt)
                let range = Self.pauseSeconds
                return [.pause(seconds: min(max(retryAfter ?? 2, range.lowerBound), range.upperBound))]
            case .malformed, .off, .unknownSession, .repeated: return end(.noHandshake)
            }
        }
    }

    private mutating func agreed(
        _ attempt: Attempt, _ secrets: PayloadSecrets, _ expires: Int64, at now: Date
    ) -> [Action] {
        sessions += 1
        preferred = attempt.key
        let lifetime = TimeInterval(min(expires, HandshakeReply.lifetimeLimit))
        // From when the handshake was begun: the server cannot have made the session before that.
        var live = Live(
            key: attempt.key, keys: SessionKeys(secrets), begun: attempt.begun,
            expires: attempt.begun.addingTimeInterval(lifetime), lastUse: now)
        guard !Self.isOver(live, at: now) else { return end(.noHandshake) }
        let calls = waiting
        waiting = []
        let actions = calls.map { Action.send($0.id, message(for: $0, &live, at: now)) }
        phase = .live(live)
        return actions
    }

    private mutating func registration(
        _ attempt: Attempt, _ registration: Registration, at now: Date
    ) -> [Action] {
        switch registration {
        case .there: handshake(attempt, at: now)
        case .gone: end(.notRegistered)
        case .unreadable: end(.proofRefused)
        }
    }

    private mutating func use(_ keys: [Key], at now: Date) -> [Action] {
        self.keys = keys
        let isKnown = { (key: PayloadKey) in keys.contains { $0.key == key && now < $0.notAfter } }
        switch phase {
        case .none: return []
        case .live(let live):
            if !isKnown(live.key) { phase = .none }
            return []
        case .handshake(let attempt), .pausing(let attempt), .registration(let attempt):
            // What comes of it does not count any more.
            return isKnown(attempt.key) ? [] : start(at: now)
        }
    }

    /// There is no session, and nobody waits for one. Nothing of the calls was sent.
    private mutating func end(_ reason: Failure.Reason? = nil) -> [Action] {
        phase = .none
        guard let reason else { return [] }
        defer { waiting = [] }
        return waiting.map { .giveUp($0.id, Failure(reason: reason, mayHaveHadEffect: false)) }
    }
}
