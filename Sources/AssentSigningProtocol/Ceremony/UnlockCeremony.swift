/// How a device opens the keys of an `assisted` password, without I/O: the server counts a try, evaluates, and hears
/// that the password was right. What must not be forgotten is stored before the call that needs it.
package struct UnlockCeremony: Hashable, Sendable {
    /// How far it is.
    package enum Phase: Hashable, Sendable {
        /// A change of the password was begun. Until it is known which one counts, a wrong one could not be told from
        /// the other one.
        case changing(hasConfirmation: Bool)
        /// A confirmation of an earlier evaluation is stored that the server has not acknowledged.
        case confirming
        /// Nothing is under way.
        case closed
        /// The next value of the ratchet is stored; the server may have counted the try.
        case trying
        /// The evaluation is stored.
        case evaluated
        case right
        /// The confirmation is stored.
        case confirmed
        /// The server has acknowledged it: the keys may be used.
        case open
        /// The server has refused, which nobody has signed.
        case refused
        case failed
    }

    /// What is to be done.
    package enum Step: Hashable, Sendable {
        /// Find out which password counts.
        case settleChange
        /// Send a confirmation that is stored.
        case sendConfirmation
        /// Store the next value of the ratchet.
        case storeRatchet
        /// Send the blinded password, and store the answer.
        case evaluate
        case open
        /// Sign that the password was right, and store that.
        case confirm
        /// Ask for the server's signed word about the password.
        case askStatus
        /// Use the keys.
        case done
        /// Stop with the error of the last event.
        case fail
    }

    /// What has happened.
    package enum Event: Hashable, Sendable {
        /// It is known which password counts.
        case settled
        /// What was to be stored, sent or opened is.
        case done
        case wrong
        /// The server has refused, or could not be reached.
        case failed(SigningErrorCode?)
    }

    /// Refusals of which the server's signed status says more.
    package static let asking: Set<SigningErrorCode> = [
        .locked, .wait, .shredded, .wrongGeneration, .containerSuspect, .containerBlocked,
    ]

    package private(set) var phase: Phase

    /// A ceremony that begins with what is stored.
    package init(hasChange: Bool, hasConfirmation: Bool) {
        phase = hasChange ? .changing(hasConfirmation: hasConfirmation) : hasConfirmation ? .confirming : .closed
    }

    /// What is to be done now.
    package var next: Step {
        switch phase {
        case .changing: .settleChange
        case .confirming, .confirmed: .sendConfirmation
        case .closed: .storeRatchet
        case .trying: .evaluate
        case .evaluated: .open
        case .right: .confirm
        case .refused: .askStatus
        case .open: .done
        case .failed: .fail
        }
    }

    /// Takes an event.
    ///
    /// - Returns: whether it belongs to this phase; else nothing is changed.
    package mutating func take(_ event: Event) -> Bool {
        switch (phase, event) {
        case (.changing(let hasConfirmation), .settled): phase = hasConfirmation ? .confirming : .closed
        // A server that does not take it must not keep the user from trying again; one that cannot be asked does.
        case (.confirming, .done), (.confirming, .failed(.some)): phase = .closed
        case (.closed, .done): phase = .trying
        case (.trying, .done): phase = .evaluated
        case (.trying, .failed(let code)): phase = code.map(Self.asking.contains) == true ? .refused : .failed
        case (.evaluated, .done): phase = .right
        case (.right, .done): phase = .confirmed
        case (.confirmed, .done): phase = .open
        case (.refused, .done), (.evaluated, .wrong): phase = .failed
        case (.changing, .failed), (.confirming, .failed), (.closed, .failed), (.evaluated, .failed), (.right, .failed),
            (.confirmed, .failed), (.refused, .failed):
            phase = .failed
        default: return false
        }
        return true
    }
}
