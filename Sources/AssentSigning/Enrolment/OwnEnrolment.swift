import AssentSigningProtocol

/// How an app enrols itself with its user's own session, without I/O: it makes the invite, enrols with it, and sends
/// the digits that it has computed. What an earlier call has left is gone on with first.
package struct OwnEnrolment: Hashable, Sendable {
    /// What an earlier call has left of an enrolment of this kind.
    package enum Leftover: Hashable, Sendable, CaseIterable {
        case nothing
        /// The server has not confirmed the keys.
        case unfinished
        /// The digits are missing, or it is not known that the server has them.
        case unconfirmed
    }

    /// How far it is. `isOld` says that an earlier call has begun it, perhaps with another user's session.
    package enum Phase: Hashable, Sendable {
        case inviting
        case enrolling(isOld: Bool)
        case sendingDigits(isOld: Bool, isRepeated: Bool)
        /// The digits were right, or there are none.
        case accepted(isOld: Bool)
        /// An old one is not of an invite that the session's user has.
        case foreign
        /// An old one has come to nothing.
        case useless
        /// The digits were wrong: somebody is between this device and the server.
        case relayed
        case active
        case failed
    }

    /// What is to be done.
    package enum Step: Hashable, Sendable {
        case makeInvite
        /// Enrol with the invite, or go on with what is left.
        case enrol
        case sendDigits
        /// Ask the server for the container's signed status.
        case askStatus
        /// Remove what is left, which was never active.
        case discard
        /// End the invite at the server, and ask for the container's signed status.
        case withdraw
        case done
        /// Stop with the error of the last step, or because the server says nothing of the digits.
        case fail
    }

    /// What has happened.
    package enum Event: Hashable, Sendable {
        case invited
        case enrolled(hasDigits: Bool)
        case digitsTaken
        /// The state that the server has signed.
        case status(ContainerState)
        /// What was to be discarded or withdrawn is.
        case cleared
        case failed(Failure)
    }

    /// Why a step has failed.
    package enum Failure: Hashable, Sendable, CaseIterable {
        /// The server may have done it.
        case noAnswer
        case wrongDigits
        /// There is no such invite, or nothing comes of the enrolment any more.
        case ended
        case other
    }

    package private(set) var phase: Phase

    /// An enrolment after what is left of an earlier one.
    package init(after leftover: Leftover) {
        phase =
            switch leftover {
            case .nothing: .inviting
            case .unfinished: .enrolling(isOld: true)
            case .unconfirmed: .sendingDigits(isOld: true, isRepeated: false)
            }
    }

    /// One that is in this phase, for tests.
    package init(at phase: Phase) { self.phase = phase }

    /// What is to be done now.
    package var next: Step {
        switch phase {
        case .inviting: .makeInvite
        case .enrolling: .enrol
        case .sendingDigits: .sendDigits
        case .accepted, .foreign: .askStatus
        case .useless: .discard
        case .relayed: .withdraw
        case .active: .done
        case .failed: .fail
        }
    }

    /// Takes an event.
    ///
    /// - Returns: whether it belongs to this phase; else nothing is changed.
    package mutating func take(_ event: Event) -> Bool {
        switch (phase, event) {
        case (.inviting, .invited): phase = .enrolling(isOld: false)
        case (.enrolling(let isOld), .enrolled(hasDigits: true)):
            phase = .sendingDigits(isOld: isOld, isRepeated: false)
        case (.enrolling(let isOld), .enrolled(hasDigits: false)): phase = .accepted(isOld: isOld)
        case (.enrolling(isOld: true), .failed(.ended)): phase = .useless
        case (.sendingDigits(let isOld, _), .digitsTaken): phase = .accepted(isOld: isOld)
        // Right digits may be sent again: the server gives the same answer.
        case (.sendingDigits(let isOld, isRepeated: false), .failed(.noAnswer)):
            phase = .sendingDigits(isOld: isOld, isRepeated: true)
        case (.sendingDigits, .failed(.wrongDigits)): phase = .relayed
        case (.sendingDigits(isOld: true, _), .failed(.ended)): phase = .foreign
        case (.accepted, .status(.active)): phase = .active
        case (.accepted(isOld: true), .status(.void)), (.accepted(isOld: true), .status(.revoked)): phase = .inviting
        case (.accepted, .status): phase = .failed
        // Nobody has signed that it is not this user's, so only one that was never active is removed.
        case (.foreign, .status(.unconfirmed)): phase = .useless
        case (.foreign, .status): phase = .inviting
        case (.useless, .cleared): phase = .inviting
        case (.relayed, .cleared): phase = .failed
        case (.active, _), (.failed, _): return false
        case (_, .failed): phase = .failed
        default: return false
        }
        return true
    }
}
