package import AssentCore

/// The keys of an enrolment in the offer's order, without OTP keys: what the commitment and the transcript bind.
package struct SigningKeyList: Hashable, Sendable {
    package let frame: Frame

    /// The list of these keys, whose own proofs of possession come later than the commitment.
    package init(_ keys: [EnrolledKey]) {
        var frame = Frame("tsp/1 keys", .integer(UInt64(keys.count)))
        for key in keys {
            let fields = [
                key.usage.rawValue, key.label, key.kid.text, key.slot?.rawValue ?? "", key.policy,
                key.keystore.rawValue,
            ]
            for field in fields { frame.append(.text(field)) }
        }
        self.frame = frame
    }
}

/// All that both sides must agree on at enrolment. Its digits are typed by the user.
package struct EnrolmentTranscript: Hashable, Sendable {
    package let frame: Frame

    /// The transcript of a key list, for the issuer's identity key that the device found.
    init(of list: Enrolment, identity: KeyThumbprint) {
        frame = Frame(
            "tsp/1 enrol", .text(identity.text), .text(list.issuer), .text(list.pid.text), .text(list.did.text),
            .text(list.sub), .bytes(list.offer.bytes), .bytes(list.nonceD.bytes), .bytes(list.nonceS.bytes),
            .bytes(list.keyList.frame.bytes))
    }

    /// The transcript's SHA-256, as it stands in the record.
    package var hash: SigningHash { frame.hash }

    /// The eight digits that the user types.
    package var digits: String {
        let value = hash.bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % 100_000_000
        let text = String(value)
        return String(repeating: "0", count: 8 - text.utf8.count) + text
    }
}
