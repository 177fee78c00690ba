/// How a device gets keys that the server knows, without I/O: an enrolment, which begins with an invite, and a renewal,
/// which begins with a container whose old keys vouch for the new ones.
///
/// ``next(_:)`` says what is to be done. What comes of it is taken as an event: one that comes late, twice or in
/// another phase changes nothing, so that a reply which somebody has held back does no harm.
package struct KeyCeremony: Hashable, Sendable {
    /// What it begins with.
    package enum Beginning: Hashable, Sendable {
        /// An invite: the container is new.
        case invite
        /// The container of a user, by its `sub`; with a code after a reset.
        case container(sub: String, hasCode: Bool)
    }

    /// Whether the keys behind passwords can still be used: nothing stored opens them before the server has answered.
    package enum SealedKeys: Hashable, Sendable {
        /// There are none, or this process has made them.
        case open
        /// Another process has made them, and has ended.
        case lost(isAssisted: Bool, hasTransport: Bool)
    }

    /// What is to be done.
    package enum Step: Hashable, Sendable {
        /// Ask for an offer.
        case start
        /// Make the keys of this offer, and a nonce.
        case makeKeys(offer: String)
        /// Forget what was made and make it anew: nothing binds the device to it yet.
        case makeKeysAgain
        /// Send the commitment to these keys.
        case commit(KeyPhase.MadeKeys)
        /// Sign the key list, and store it before it is sent.
        case sign(KeyPhase.CommittedKeys)
        /// Send the key list.
        case complete(KeyPhase.SignedKeys)
        case confirm(KeyPhase.SignedKeys, echo: SigningNonce)
        /// Nothing: the digits are the user's, or the new keys the container's.
        case done(KeyPhase.SignedKeys)
        /// Give up: the keys cannot be opened any more.
        case fail
    }

    /// What has happened.
    package enum Event: Sendable {
        /// The server's offer, which was verified and accepted.
        case offer(SignedMessage<Offer>)
        case keys(nonceD: SigningNonce)
        /// What was made is to be made anew.
        case keysForgotten
        /// The offer is not the server's any more, and nothing is left that was made for it.
        case offerForgotten
        case nonce(NonceReply)
        case signed(enrol: String)
        /// The server has the key list.
        case enrolled(Enrolled)
        case confirmed
    }

    /// What is done after a refusal.
    package enum Reaction: Hashable, Sendable {
        /// Forget what was made, and ask for an offer again: the server has replaced the one that was accepted, and has
        /// not taken the commitment.
        case askAgain
        /// The app hears of it: the offer was replaced each time.
        case stopAsking
        /// Have the old keys vouch again: the password was typed too long ago.
        case endorseAgain
        /// Forget the new keys, and begin again once: the server has forgotten them, and nothing was confirmed.
        case giveUp
        /// The app hears of it.
        case fail
    }

    package let beginning: Beginning
    package private(set) var phase: KeyPhase
    /// How often it may still ask for an offer again, unless its app begins anew: a delayed request replaces the offer
    /// once, and each new offer may cost the user a password.
    package private(set) var offersLeft = 2
    private var hasEndorsedAgain = false

    /// A ceremony that is as far as what is stored says.
    package init(_ beginning: Beginning, at phase: KeyPhase = .begun) {
        (self.beginning, self.phase) = (beginning, phase)
    }

    /// Goes on at the phase that is stored now.
    package mutating func goOn(at phase: KeyPhase) { self.phase = phase }

    /// Whether it renews the keys of a container.
    package var isRenewal: Bool { beginning != .invite }

    /// What is to be done now.
    package func next(_ sealed: SealedKeys) -> Step {
        switch phase {
        case .begun: .start
        case .offered(let offer): .makeKeys(offer: offer)
        case .keysMade(let made):
            switch sealed {
            case .lost where isRenewal: .makeKeysAgain
            // One commitment is all that an invite takes: what could not be completed is not committed to.
            case .lost(isAssisted: true, _): .fail
            default: .commit(made)
            }
        case .committed(let committed):
            switch sealed {
            case .lost(let isAssisted, _) where isAssisted || isRenewal: .fail
            default: .sign(committed)
            }
        case .signed(let signed):
            switch sealed {
            case .lost(_, hasTransport: true) where isRenewal: .fail
            default: .complete(signed)
            }
        case .completed(let signed, let echo): .confirm(signed, echo: echo)
        case .confirmed(let signed, _): .done(signed)
        }
    }

    /// Takes an event.
    ///
    /// - Returns: whether it belongs to this phase; else nothing is changed.
    /// - Throws: ``SigningProtocolError`` when the server names another user than the container's.
    package mutating func take(_ event: Event) throws(SigningProtocolError) -> Bool {
        switch (phase, event) {
        case (.begun, .offer(let offer)): phase = .offered(offer: offer.compact)
        case (.offered(let offer), .keys(let nonceD)): phase = .keysMade(.init(offer: offer, nonceD: nonceD))
        case (.keysMade(let made), .keysForgotten): phase = .offered(offer: made.offer)
        case (.offered, .offerForgotten): phase = .begun
        case (.keysMade(let made), .nonce(let reply)):
            if case .container(let sub, _) = beginning, !StrictJSON.same(sub, reply.sub) {
                throw SigningProtocolError(.wrongAudience, "The server names another user.", member: "sub")
            }
            phase = .committed(.init(made: made, nonceS: reply.nonceS))
        case (.committed(let committed), .signed(let enrol)):
            phase = .signed(.init(committed: committed, enrol: enrol))
        case (.signed(let signed), .enrolled(let reply)): phase = .completed(signed, echo: reply.echo)
        case (.completed(let signed, let echo), .confirmed): phase = .confirmed(signed, echo: echo)
        default: return false
        }
        return true
    }

    /// Takes a refusal of the server. It is not signed: what follows from a forged one shows no secret of this device.
    package mutating func refused(_ code: SigningErrorCode) -> Reaction {
        if case .keysMade = phase, code == .hashMismatch {
            guard offersLeft > 0 else { return .stopAsking }
            offersLeft -= 1
            return .askAgain
        }
        guard case .container(_, let hasCode) = beginning else { return .fail }
        switch (phase, code) {
        case (.completed, _), (.confirmed, _): return .fail
        case (.signed, .unlockRequired) where !hasCode && !hasEndorsedAgain:
            hasEndorsedAgain = true
            return .endorseAgain
        // New keys without a code are made anew. Those of a reset would cost the user another code, and are kept until
        // that comes: nobody has signed that the server has forgotten them.
        case (_, .enrolmentVoid) where !hasCode, (_, .commitmentChanged) where !hasCode: return .giveUp
        default: return .fail
        }
    }
}
