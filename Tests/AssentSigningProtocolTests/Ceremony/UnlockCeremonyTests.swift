import AssentSigningProtocol
import TestSupport
import Testing

@Suite("Signing: the ceremony that opens keys behind a password")
struct UnlockCeremonyTests {
    typealias Phase = UnlockCeremony.Phase
    typealias Event = UnlockCeremony.Event

    static let events: [Event] =
        [.settled, .done, .wrong, .failed(nil), .failed(.keyRetired), .failed(.serverRolledBack)]
        + UnlockCeremony.asking.map { .failed($0) }

    /// Every phase that a ceremony can be in, by the events that lead there.
    private static func reached() -> [Phase: UnlockCeremony] {
        var found: [Phase: UnlockCeremony] = [:]
        var waiting = [true, false].flatMap { change in
            [true, false].map { UnlockCeremony(hasChange: change, hasConfirmation: $0) }
        }
        while let ceremony = waiting.popLast() {
            guard found[ceremony.phase] == nil else { continue }
            found[ceremony.phase] = ceremony
            for event in events {
                var next = ceremony
                if next.take(event) { waiting.append(next) }
            }
        }
        return found
    }

    /// What an event makes of a phase, written down once more.
    private func expected(_ phase: Phase, _ event: Event) -> Phase {
        switch (phase, event) {
        case (.changing(let hasConfirmation), .settled): hasConfirmation ? .confirming : .closed
        case (.confirming, .done): .closed
        case (.confirming, .failed(let code)): code == nil ? .failed : .closed
        case (.closed, .done): .trying
        case (.trying, .done): .evaluated
        case (.trying, .failed(let code?)) where UnlockCeremony.asking.contains(code): .refused
        case (.evaluated, .done): .right
        case (.evaluated, .wrong), (.refused, .done): .failed
        case (.right, .done): .confirmed
        case (.confirmed, .done): .open
        case (.open, _), (.failed, _): phase
        case (_, .failed): .failed
        default: phase
        }
    }

    @Test("Each event in each phase; every phase can be reached")
    func everyEvent() {
        let reached = Self.reached()
        #expect(reached.count == 11)
        for (phase, ceremony) in reached {
            for event in Self.events {
                var next = ceremony
                let isTaken = next.take(event)
                #expect(next.phase == expected(phase, event), "\(phase), \(event)")
                #expect(isTaken == (next.phase != phase), "\(phase), \(event)")
            }
        }
    }

    @Test("A random walk: no try before the ratchet is stored, no use before the server has acknowledged the password")
    func walk() {
        var random = SmallRandom(seed: 11)
        var ceremony = UnlockCeremony(hasChange: true, hasConfirmation: true)
        var done: [UnlockCeremony.Step] = []
        for _ in 0..<(Soak.isOn ? 1_000_000 : 20_000) {
            let step = ceremony.next
            switch step {
            case .evaluate: #expect(done.last == .storeRatchet)
            case .open: #expect(done.last == .evaluate)
            case .confirm: #expect(done.last == .open)
            case .done: #expect(done.suffix(2) == [.confirm, .sendConfirmation])
            default: break
            }
            let isTaken = ceremony.take(Self.events.randomElement(using: &random) ?? .done)
            if isTaken { done.append(step) }
            if step == .done || step == .fail {
                ceremony = UnlockCeremony(
                    hasChange: .random(using: &random), hasConfirmation: .random(using: &random))
                done = []
            }
        }
    }

    @Test("A local try: counted before it is made, delayed or destroyed as the lock says")
    func local() {
        for failures in 0..<20 {
            let none = LocalTry(lock: .none, failures: failures)
            #expect(none.before(elapsed: .zero) == .attempt)
            #expect(none.afterWrong() == (false, nil, nil))
            let counter = LocalTry(lock: .counter(max: 5), failures: failures)
            #expect(counter.before(elapsed: .zero) == (failures < 5 ? .attempt : .destroy))
            #expect(counter.afterWrong() == (failures >= 4, 4 - failures, nil))
            let delay = LocalTry(lock: .delay(seconds: 3, counter: 4), failures: failures)
            let whole = failures == 0 ? 0 : 3 << (min(failures, 4) - 1)
            #expect(delay.before(elapsed: .zero) == (whole == 0 ? .attempt : .wait(whole)))
            #expect(delay.before(elapsed: .seconds(whole)) == .attempt)
            if whole > 0 { #expect(delay.before(elapsed: .milliseconds(1)) == .wait(whole)) }
            #expect(delay.afterWrong() == (false, nil, 3 << (min(failures + 1, 4) - 1)))
        }
    }
}
