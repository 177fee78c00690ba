import AssentSigning
import AssentSigningProtocol
import Testing

@Suite("Signing device: the steps of an enrolment with the app's own session")
struct OwnEnrolmentPhaseTests {
    typealias Phase = OwnEnrolment.Phase
    typealias Event = OwnEnrolment.Event

    static let phases: [Phase] =
        [.inviting, .foreign, .useless, .relayed, .active, .failed]
        + [true, false].flatMap { isOld in
            [.enrolling(isOld: isOld), .accepted(isOld: isOld)]
                + [true, false].map { .sendingDigits(isOld: isOld, isRepeated: $0) }
        }
    static let events: [Event] =
        [.invited, .enrolled(hasDigits: true), .enrolled(hasDigits: false), .digitsTaken, .cleared]
        + ContainerState.allCases.map { .status($0) } + OwnEnrolment.Failure.allCases.map { .failed($0) }

    /// What an event makes of a phase, written down once more.
    private func expected(_ phase: Phase, _ event: Event) -> Phase {
        switch (phase, event) {
        case (.active, _), (.failed, _): phase
        case (.inviting, .invited): .enrolling(isOld: false)
        case (.enrolling(let isOld), .enrolled(let hasDigits)):
            hasDigits ? .sendingDigits(isOld: isOld, isRepeated: false) : .accepted(isOld: isOld)
        case (.sendingDigits(let isOld, _), .digitsTaken): .accepted(isOld: isOld)
        case (.accepted, .status(.active)): .active
        case (.accepted(isOld: true), .status(.void)), (.accepted(isOld: true), .status(.revoked)): .inviting
        case (.accepted, .status): .failed
        case (.foreign, .status(let state)): state == .unconfirmed ? .useless : .inviting
        case (.useless, .cleared): .inviting
        case (.relayed, .cleared): .failed
        case (.enrolling(isOld: true), .failed(.ended)): .useless
        case (.sendingDigits(let isOld, isRepeated: false), .failed(.noAnswer)):
            .sendingDigits(isOld: isOld, isRepeated: true)
        case (.sendingDigits, .failed(.wrongDigits)): .relayed
        case (.sendingDigits(isOld: true, _), .failed(.ended)): .foreign
        case (_, .failed): .failed
        default: phase
        }
    }

    @Test("Each event in each phase")
    func everyEvent() {
        for phase in Self.phases {
            for event in Self.events {
                var enrolment = OwnEnrolment(at: phase)
                let isTaken = enrolment.take(event)
                #expect(enrolment.phase == expected(phase, event), "\(phase), \(event)")
                #expect(isTaken == (enrolment.phase != phase), "\(phase), \(event)")
            }
        }
    }

    @Test("What is done in each phase: digits that were wrong are never sent again")
    func steps() {
        let steps: [Phase: OwnEnrolment.Step] = [
            .inviting: .makeInvite, .enrolling(isOld: true): .enrol, .enrolling(isOld: false): .enrol,
            .sendingDigits(isOld: true, isRepeated: true): .sendDigits,
            .sendingDigits(isOld: true, isRepeated: false): .sendDigits,
            .sendingDigits(isOld: false, isRepeated: true): .sendDigits,
            .sendingDigits(isOld: false, isRepeated: false): .sendDigits, .accepted(isOld: true): .askStatus,
            .accepted(isOld: false): .askStatus, .foreign: .askStatus, .useless: .discard, .relayed: .withdraw,
            .active: .done, .failed: .fail,
        ]
        #expect(Set(steps.keys) == Set(Self.phases))
        for (phase, step) in steps { #expect(OwnEnrolment(at: phase).next == step, "\(phase)") }
    }

    @Test("It begins with what an earlier call has left")
    func leftovers() {
        let first: [OwnEnrolment.Leftover: OwnEnrolment.Step] = [
            .nothing: .makeInvite, .unfinished: .enrol, .unconfirmed: .sendDigits,
        ]
        for leftover in OwnEnrolment.Leftover.allCases {
            #expect(OwnEnrolment(after: leftover).next == first[leftover], "\(leftover)")
        }
    }
}
