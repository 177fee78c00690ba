import AssentSigningProtocol
import TestSupport
import Testing

@Suite("Signing: the ceremony of a decision")
struct DecisionCeremonyTests {
    typealias Phase = DecisionCeremony.Phase
    typealias Event = DecisionCeremony.Event

    static let phases: [Phase] =
        [.open, .refused, .signed, .receipted(isSame: true), .receipted(isSame: false), .failed]
        + [true, false].flatMap { same in [true, false].map { .stored(isSame: same, isByReplacedKey: $0) } }
    static let events: [Event] =
        [.signed, .receipt]
        + CallRetry.Failure.allCases.flatMap { failure in
            [true, false].map { .failed(failure, isByReplacedKey: $0) }
        }

    /// What an event makes of a phase, written down once more.
    private func expected(_ phase: Phase, _ event: Event) -> Phase {
        switch (phase, event) {
        case (.open, .signed), (.refused, .signed), (.stored(isSame: false, isByReplacedKey: true), .signed): .signed
        case (.signed, .receipt), (.stored(isSame: true, _), .receipt): .receipted(isSame: true)
        case (.signed, .failed): .failed
        case (.stored(isSame: true, _), .failed(.unlockRequired, _)): .refused
        case (.stored(isSame: true, _), .failed(.keyRetired, isByReplacedKey: true)): .refused
        case (.stored(isSame: true, _), .failed(.notFetched, isByReplacedKey: true)): .refused
        case (.stored(isSame: true, _), .failed): .failed
        default: phase
        }
    }

    @Test("Each event in each phase")
    func everyEvent() {
        for phase in Self.phases {
            for event in Self.events {
                var ceremony = DecisionCeremony(at: phase)
                let isTaken = ceremony.take(event)
                #expect(ceremony.phase == expected(phase, event), "\(phase), \(event)")
                #expect(isTaken == (ceremony.phase != phase), "\(phase), \(event)")
            }
        }
    }

    @Test("What is done in each phase: nothing is signed beside an answer that the server may have")
    func steps() {
        let steps: [(Phase, DecisionCeremony.Step)] = [
            (.open, .sign(replacing: false)), (.refused, .sign(replacing: true)), (.signed, .send),
            (.receipted(isSame: true), .done), (.receipted(isSame: false), .failDecided), (.failed, .fail),
            (.stored(isSame: true, isByReplacedKey: true), .send),
            (.stored(isSame: true, isByReplacedKey: false), .send),
            (.stored(isSame: false, isByReplacedKey: true), .sign(replacing: true)),
            (.stored(isSame: false, isByReplacedKey: false), .failPending),
        ]
        #expect(Set(steps.map(\.0)) == Set(Self.phases))
        for (phase, step) in steps { #expect(DecisionCeremony(at: phase).next == step, "\(phase)") }
    }

    @Test("A random walk ends, signs at most once more than it began with, and keeps a receipt")
    func walk() {
        var random = SmallRandom(seed: 7)
        var ceremony = DecisionCeremony(at: .open)
        var signatures = 0
        for _ in 0..<(Soak.isOn ? 1_000_000 : 20_000) {
            let (before, step) = (ceremony, ceremony.next)
            let event = Self.events.randomElement(using: &random) ?? .signed
            let isTaken = ceremony.take(event)
            if isTaken, event == .signed {
                signatures += 1
                if case .sign = step {} else { Issue.record("signed in \(before.phase)") }
            }
            if case .receipted = before.phase { #expect(ceremony == before) }
            #expect(signatures <= 1)
            if [.failed, .receipted(isSame: true), .receipted(isSame: false)].contains(ceremony.phase)
                || ceremony.next == .failPending
            {
                (ceremony, signatures) = (DecisionCeremony(at: Self.phases.randomElement(using: &random) ?? .open), 0)
            }
        }
    }
}
