/// How far the new keys of a device have come, with what each phase has and nothing else.
package enum KeyPhase: Hashable, Sendable {
    case begun
    /// The server has said which keys it wants.
    case offered(offer: String)
    /// The keys are made, and the nonce that the commitment binds.
    case keysMade(MadeKeys)
    /// The server has answered the commitment.
    case committed(CommittedKeys)
    /// The key list is signed and stored: from now on a repetition has the same bytes.
    case signed(SignedKeys)
    /// The server has the key list.
    case completed(SignedKeys, echo: SigningNonce)
    /// The server knows that the device has stored the answer.
    case confirmed(SignedKeys, echo: SigningNonce)

    /// Keys that are made for an offer.
    package struct MadeKeys: Hashable, Sendable {
        /// The server's `tsp-offer+jwt`.
        package let offer: String
        /// The device's nonce, from before the commitment.
        package let nonceD: SigningNonce
    }

    /// Keys that the device has committed to.
    package struct CommittedKeys: Hashable, Sendable {
        package let made: MadeKeys
        /// The server's nonce, from after the commitment.
        package let nonceS: SigningNonce
    }

    /// Keys whose list is signed.
    package struct SignedKeys: Hashable, Sendable {
        package let committed: CommittedKeys
        /// The device's `tsp-enrol+jwt`.
        package let enrol: String
    }

    /// The offer, from ``offered(offer:)`` on.
    package var offer: String? {
        if case .offered(let offer) = self { return offer }
        return made?.offer
    }

    /// What was made, from ``keysMade(_:)`` on.
    package var made: MadeKeys? {
        if case .keysMade(let made) = self { return made }
        return committed?.made
    }

    /// What was committed to, from ``committed(_:)`` on.
    package var committed: CommittedKeys? {
        if case .committed(let committed) = self { return committed }
        return signed?.committed
    }

    /// What was signed, from ``signed(_:)`` on.
    package var signed: SignedKeys? {
        switch self {
        case .signed(let signed), .completed(let signed, _), .confirmed(let signed, _): signed
        case .begun, .offered, .keysMade, .committed: nil
        }
    }

    /// What `confirm` sends back, from ``completed(_:echo:)`` on.
    package var echo: SigningNonce? {
        switch self {
        case .completed(_, let echo), .confirmed(_, let echo): echo
        default: nil
        }
    }

    package var isConfirmed: Bool {
        if case .confirmed = self { return true }
        return false
    }
}

extension KeyPhase {
    /// The phase in which these values are stored; `nil` when there is a later one without an earlier one.
    package init?(
        offer: String?, nonceD: SigningNonce?, nonceS: SigningNonce?, enrol: String?, echo: SigningNonce?,
        isConfirmed: Bool
    ) {
        let known = [offer != nil, nonceD != nil, nonceS != nil, enrol != nil, echo != nil, isConfirmed]
        guard !zip(known, known.dropFirst()).contains(where: { !$0 && $1 }) else { return nil }
        self = .begun
        guard let offer else { return }
        self = .offered(offer: offer)
        guard let nonceD else { return }
        let made = MadeKeys(offer: offer, nonceD: nonceD)
        self = .keysMade(made)
        guard let nonceS else { return }
        let committed = CommittedKeys(made: made, nonceS: nonceS)
        self = .committed(committed)
        guard let enrol else { return }
        let signed = SignedKeys(committed: committed, enrol: enrol)
        self = .signed(signed)
        guard let echo else { return }
        self = isConfirmed ? .confirmed(signed, echo: echo) : .completed(signed, echo: echo)
    }
}
