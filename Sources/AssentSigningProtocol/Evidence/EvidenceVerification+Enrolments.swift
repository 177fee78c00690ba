extension EvidenceVerification {
    /// The container's key sets, each vouched for by the one before it as far as it is.
    mutating func judgeEnrolments() {
        for (index, enrolment) in bundle.enrolments.enumerated() {
            let failures = report.contradicted.count
            let member = "enrolments[\(index)]"
            guard let set = read(enrolment, member) else { continue }
            judge(set, enrolment, member, index)
            // A key set that is contradicted still says which keys were meant, so that decisions are judged, too.
            keySets.append(set)
            guard report.contradicted.count == failures else { continue }
            report.established.append(.keySet(sequence: set.record.sequence, keys: set.record.keys))
            if index == 0 { report.attested.append(.user(sub: set.record.sub, name: set.record.user)) }
        }
    }

    private mutating func read(_ enrolment: EvidenceEnrolment, _ member: String) -> KeySet? {
        let record: SignedMessage<EnrolmentRecord>? = serverMessage(enrolment.record, "\(member).record")
        let offer: SignedMessage<Offer>? = serverMessage(enrolment.offer, "\(member).offer")
        let enrol = attempt("\(member).enrol", try UnverifiedMessage<Enrolment>(enrolment.enrol).verifiedByItself())
        guard let record, let offer, let enrol else { return nil }
        return KeySet(
            record: record.content, recordHash: .record(record.compact), enrolment: enrol.content, offer: offer.content)
    }

    private mutating func judge(_ set: KeySet, _ sent: EvidenceEnrolment, _ member: String, _ index: Int) {
        let (record, enrol, offer) = (set.record, set.enrolment, set.offer)
        let before = index == 0 ? nil : keySets.last { $0.record.sequence == index - 1 }
        check(record.sequence == index, "\(member).record.seq", "The key sets are not complete, or not in order.")
        check(
            record.previous == before?.recordHash, "\(member).record.prev", "It is not the hash of the record before.")
        check(record.enrol == .enrolment(sent.enrol), "\(member).record.enrol", "It is not the hash of the key list.")
        check(enrol.offer == .offer(sent.offer), "\(member).enrol.offer", "It is not the hash of the offer.")
        check(
            record.keys == enrol.keys.map(\.kid), "\(member).record.keys",
            "They are not the keys that the device signed.")
        check(
            record.transcript == enrol.transcript(identity: record.identity).hash, "\(member).record.transcript",
            "It is not the hash of the transcript.")
        check(
            bundle.identities.contains { $0.thumbprint == record.identity } && offer.identity == record.identity,
            "\(member).record.identity", "It is not the identity key of the offer, or not in the bundle.")
        check(
            [enrol.pid, offer.pid].allSatisfy { $0 == record.pid }, "\(member).record.pid",
            "Offer, key list and record are not of the same invite.")
        check(
            [enrol.did, offer.did, keySets.first?.record.did ?? record.did].allSatisfy { $0 == record.did },
            "\(member).record.aud", "Offer, key list and records are not of the same container.")
        check(
            StrictJSON.same(enrol.sub, record.sub)
                && (keySets.first.map { StrictJSON.same($0.record.sub, record.sub) } ?? true), "\(member).record.sub",
            "The key list and the records are not of the same user.")
        check(StrictJSON.same(enrol.issuer, bundle.issuer), "\(member).enrol.aud", "It is for another issuer.")
        check(
            offer.head.audience == (before?.enrolment ?? enrol).device.kid.text, "\(member).offer.aud",
            "It is not for the device key.")
        check(
            record.commit == offer.commit
                && (record.commit == .digits || index > 0 || !enrol.keys.contains(where: \.usage.needsPossession)),
            "\(member).record.commit", "It is not that of the offer, or keys that approve came without digits.")
        judgeKeys(set, member)
        judgeEndorsements(set, sent, member, before)
    }

    private mutating func judgeKeys(_ set: KeySet, _ member: String) {
        let offered = set.offer.keys.filter { $0.usage != .otp }
        let isOffered =
            offered.count == set.enrolment.keys.count
            && zip(offered, set.enrolment.keys).allSatisfy { offered, key in
                offered.usage == key.usage && StrictJSON.same(offered.label, key.label) && offered.slot == key.slot
                    && StrictJSON.same(offered.policy, key.policy)
            }
        check(isOffered, "\(member).enrol.keys", "They are not the keys of the offer.")
        let enrol = set.enrolment
        for (index, key) in enrol.keys.enumerated() {
            guard let compact = key.possession else { continue }
            let place = "\(member).enrol.keys[\(index)].pop"
            guard let proof = attempt(place, try SignedMessage<KeyPossession>(compact, key: key.jwk).content)
            else { continue }
            check(
                StrictJSON.same(proof.issuer, enrol.issuer) && proof.did == enrol.did && proof.nonceS == enrol.nonceS
                    && proof.device == enrol.device.kid && proof.usage == key.usage
                    && StrictJSON.same(proof.label, key.label) && proof.kid == key.kid, place,
                "It is a proof for another enrolment or another key.")
        }
    }

    private mutating func judgeEndorsements(
        _ set: KeySet, _ sent: EvidenceEnrolment, _ member: String, _ before: KeySet?
    ) {
        let place = "\(member).endorsements"
        guard let before else {
            let grounds: [RecordGround] = [.device, .sign, .reset]
            check(
                sent.endorsements.isEmpty && !set.record.by.contains(where: grounds.contains), place,
                "The first key set has no old keys that could endorse it.")
            return
        }
        var usages: Set<SigningKeyUsage> = []
        for (index, compact) in sent.endorsements.enumerated() {
            let place = "\(place)[\(index)]"
            guard
                let message = attempt(place, try SignedMessage<Endorsement>(compact, keys: { before.key($0)?.jwk })),
                let key = before.key(message.kid)
            else { continue }
            guard
                check(
                    StrictJSON.same(message.content.issuer, bundle.issuer) && message.content.did == set.record.did
                        && message.content.enrol == set.record.enrol, place, "It is for other keys.")
            else { continue }
            usages.insert(key.usage)
            report.established.append(.endorsed(sequence: set.record.sequence, by: message.kid))
        }
        let signed = usages.contains(where: \.needsPossession)
        check(
            set.record.by.contains(.device) == usages.contains(.device)
                && set.record.by.contains(.sign) == signed, "\(member).record.by", "It does not fit the endorsements.")
        if !signed { report.notEstablished.append(.samePerson(sequence: set.record.sequence)) }
    }
}
