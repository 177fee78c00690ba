/// How a device answers one transaction, without I/O: an answer is signed once and stored before it is sent, the same
/// answer again is the same bytes, and another answer is not signed beside it.
package struct DecisionCeremony: Hashable, Sendable {
    /// What is known of the transaction here.
    package enum Phase: Hashable, Sendable {
        case open
        /// An answer was signed and stored before; the server may have it.
        case stored(isSame: Bool, isByReplacedKey: Bool)
        /// The stored answer was refused for what only a new signature mends.
        case refused
        /// An answer was signed just now and stored.
        case signed
        case receipted(isSame: Bool)
        /// The call has failed, and the app hears of it.
        case failed
    }

    /// What is to be done.
    package enum Step: Hashable, Sendable {
        /// Sign the answer and store it, in the place of the one that is stored if `replacing`.
        case sign(replacing: Bool)
        /// Send what is stored.
        case send
        /// Show the receipt.
        case done
        /// Stop: another answer was signed before, and has to be sent first.
        case failPending
        /// Stop: another answer has a receipt.
        case failDecided
        /// Stop with the error of the call.
        case fail
    }

    /// What has happened.
    package enum Event: Hashable, Sendable {
        /// The answer is signed and stored.
        case signed
        case receipt
        /// The call has failed. `isByReplacedKey`: whether the stored answer's key is replaced by now.
        case failed(CallRetry.Failure, isByReplacedKey: Bool)
    }

    package private(set) var phase: Phase

    /// A ceremony that is as far as what is stored says.
    package init(at phase: Phase) { self.phase = phase }

    /// What is to be done now.
    package var next: Step {
        switch phase {
        case .open: .sign(replacing: false)
        case .stored(isSame: true, _), .signed: .send
        // The server refuses what a replaced key has signed, or has decided long ago.
        case .refused, .stored(isSame: false, isByReplacedKey: true): .sign(replacing: true)
        case .stored(isSame: false, isByReplacedKey: false): .failPending
        case .receipted(isSame: true): .done
        case .receipted(isSame: false): .failDecided
        case .failed: .fail
        }
    }

    /// Takes an event. After a refusal a stored answer may be signed again, once (``CallRetry``): the server takes one
    /// decision, so nothing is lost if somebody forged the refusal.
    ///
    /// - Returns: whether it belongs to this phase; else nothing is changed.
    package mutating func take(_ event: Event) -> Bool {
        switch (next, event) {
        case (.sign, .signed): phase = .signed
        case (.send, .receipt): phase = .receipted(isSame: true)
        case (.send, .failed(let failure, let isByReplacedKey)):
            var retry = CallRetry(
                sends: 0, signature: phase == .signed ? .fresh : isByReplacedKey ? .replaced : .stored)
            phase = retry.next(after: failure) == .signAgain ? .refused : .failed
        default: return false
        }
        return true
    }
}
