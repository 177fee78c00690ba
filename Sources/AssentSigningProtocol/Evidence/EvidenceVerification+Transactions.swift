extension EvidenceVerification {
    /// By how many seconds the clocks of two nodes may differ: each may be half of it off. What the deciding statement
    /// compared is compared exactly.
    private static let tolerance = 60

    /// What is known of one transaction while it is judged.
    private struct Case {
        let sent: EvidenceTransaction
        let member: String
        let keys: KeySet
        let signer: EnrolledKey
        let decision: SignedMessage<Decision>
        let receipt: Receipt
        let document: SignedMessage<TransactionDocument>?
    }

    /// A decision: document, request, signatures, evaluation, and a receipt that agrees with all of them.
    mutating func judge(_ sent: EvidenceTransaction, at member: String) {
        let failures = report.contradicted.count
        guard let receipt: SignedMessage<Receipt> = serverMessage(sent.receipt, "\(member).receipt"),
            let unverified = attempt("\(member).decision", try UnverifiedMessage<Decision>(sent.decision))
        else { return }
        guard let keys = keySets.first(where: { $0.recordHash == receipt.content.record }) else {
            check(false, "\(member).receipt.record", "It is not the hash of a record in the bundle.")
            return
        }
        guard let signer = keys.key(unverified.kid) else {
            check(false, "\(member).decision", "It is signed by a key that is not in the record.")
            return
        }
        guard let decision = attempt("\(member).decision", try unverified.verified(with: signer.jwk)) else { return }
        let document: SignedMessage<TransactionDocument>? = sent.document.flatMap { serverMessage($0, "\(member).txd") }
        let one = Case(
            sent: sent, member: member, keys: keys, signer: signer, decision: decision, receipt: receipt.content,
            document: document)
        judgeReceipt(one)
        judgeDocument(one)
        judgeRequest(one)
        judgePossession(one)
        judgeEvaluation(one)
        if report.contradicted.count == failures { establish(one) }
    }

    private mutating func judgeReceipt(_ one: Case) {
        let (receipt, decision) = (one.receipt, one.decision.content)
        let member = "\(one.member).receipt"
        check(receipt.did == one.keys.record.did && decision.did == receipt.did, "\(member).aud", "Other container.")
        check(
            StrictJSON.same(receipt.sub, one.keys.record.sub) && StrictJSON.same(decision.sub, receipt.sub),
            "\(member).sub", "It is about another user.")
        check(
            StrictJSON.same(decision.issuer, bundle.issuer), "\(one.member).decision.aud", "It is for another issuer.")
        check(decision.txn == receipt.txn, "\(member).txn", "It is about another transaction.")
        check(receipt.decision == .decision(one.sent.decision), "\(member).dh", "It is not the hash of the decision.")
        check(receipt.document == decision.document, "\(member).txh", "It is not the document of the decision.")
        check(StrictJSON.same(receipt.status, decision.status), "\(member).status", "It is not that of the decision.")
        check(receipt.effect == decision.effect, "\(member).effect", "It is not that of the decision.")
        check(receipt.kid == one.signer.kid, "\(member).kid", "It is not the key that signed the decision.")
        check(receipt.device == one.keys.enrolment.device.kid, "\(member).device", "It is not the device key.")
        check(
            receipt.since <= receipt.decidedAt + Self.tolerance
                && one.keys.record.issuedAt <= receipt.decidedAt + Self.tolerance, "\(member).since",
            "The decision was made before the key was active.")
        check(
            decision.effect != .approve || one.keys.record.approvalsFrom <= receipt.decidedAt, "\(member).iat",
            "The container was not allowed to approve yet.")
        let number = one.document?.content.match != nil && decision.effect == .approve
        check(receipt.matched == number, "\(member).match", "It does not say whether a number was asked for.")
        let counted = one.keys.policy(of: one.signer).flatMap { policy in
            policy.password?.mode == .assisted ? policy.kind : nil
        }
        check(
            receipt.methods.contains(.pin) == (counted == .password)
                && receipt.methods.contains(.user) == (counted == .bioPassword), "\(member).amr",
            "It does not fit the policy of the key that signed.")
    }

    private mutating func judgeDocument(_ one: Case) {
        let decision = one.decision.content
        guard one.sent.document != nil else {
            check(decision.isBlind, "\(one.member).txd", "The document is missing.")
            if decision.isBlind {
                check(one.signer.usage == .device, "\(one.member).decision", "A blind refusal is the device key's.")
            }
            return
        }
        // A document that could not be verified is contradicted already.
        guard let document = one.document else { return }
        let (content, member) = (document.content, "\(one.member).txd")
        let keys = Dictionary(
            one.keys.enrolment.keys.map { ($0.kid, $0.usage) }, uniquingKeysWith: { first, _ in first })
        let audience = DocumentAudience(issuer: bundle.issuer, did: one.receipt.did, sub: one.receipt.sub, keys: keys)
        _ = attempt(member, try content.check(for: audience, txn: one.receipt.txn))
        check(content.request == one.receipt.request, "\(member).req", "It is not what the receipt says.")
        check(
            StrictJSON.same(content.body.relyingParty.id, one.receipt.relyingParty), "\(one.member).receipt.rp",
            "It is not the relying party of the document.")
        check(
            content.issuedAt <= one.receipt.decidedAt + Self.tolerance && one.receipt.decidedAt < content.expiresAt,
            "\(one.member).receipt.iat",
            "The transaction was not open then.")
        guard !decision.isBlind else {
            check(one.signer.usage == .device, "\(one.member).decision", "A blind refusal is the device key's.")
            return
        }
        let mismatch = content.mismatch(with: decision, compact: document.compact, signer: one.signer.kid)
        if let mismatch {
            check(false, "\(one.member).decision.\(mismatch)", "It does not fit the document.")
        }
    }

    private mutating func judgeRequest(_ one: Case) {
        guard let bytes = one.sent.request else {
            report.notEstablished.append(.request(txn: one.receipt.txn))
            return
        }
        let member = "\(one.member).request"
        guard check(SigningHash(sha256: bytes) == one.receipt.request, member, "Its hash is not req.") else { return }
        guard let request = EvidenceRequest(frame: bytes) else {
            check(false, member, "It is not framed as a request.")
            return
        }
        report.established.append(.request(txn: one.receipt.txn, request))
    }

    private mutating func judgePossession(_ one: Case) {
        let member = "\(one.member).possession"
        guard let compact = one.sent.possession else {
            check(one.signer.usage == .device, member, "The device key's signature is missing.")
            return
        }
        guard check(one.signer.usage != .device, member, "The decision is signed by the device key itself."),
            let message = attempt(member, try SignedMessage<Possession>(compact, key: one.keys.enrolment.device.jwk))
        else { return }
        let possession = message.content
        guard
            check(
                StrictJSON.same(possession.issuer, bundle.issuer) && possession.did == one.receipt.did
                    && possession.txn == one.receipt.txn && possession.decision == one.receipt.decision, member,
                "It is about another decision.")
        else { return }
        report.established.append(.sameDecision(txn: one.receipt.txn, device: message.kid))
    }

    private mutating func judgeEvaluation(_ one: Case) {
        let member = one.member
        let isAssisted = one.keys.policy(of: one.signer)?.password?.mode == .assisted
        guard isAssisted else {
            check(
                one.sent.evaluation == nil && one.sent.confirmation == nil && one.receipt.unlock == nil
                    && one.decision.content.unl == nil, "\(member).eval",
                "The key that signed needs no evaluation.")
            return
        }
        guard let eval = one.sent.evaluation, let confirm = one.sent.confirmation, let unlock = one.receipt.unlock
        else {
            check(false, "\(member).eval", "The evaluation, its confirmation or the receipt's unlock is missing.")
            return
        }
        guard let evaluation: SignedMessage<Evaluation> = serverMessage(eval, "\(member).eval"),
            let confirmation = attempt(
                "\(member).confirm",
                try SignedMessage<EvaluationConfirmation>(
                    confirm, keys: { kid in one.keys.key(kid).flatMap { $0.slot == one.signer.slot ? $0.jwk : nil } })
            )?.content
        else { return }
        let made = evaluation.content
        check(made.head.audience == one.receipt.did.text, "\(member).eval.aud", "It is for another container.")
        check(
            made.purpose == .unlock && made.slot == one.signer.slot, "\(member).eval.purpose",
            "It did not open the key that signed.")
        let slot = one.keys.offer.slots.first { $0.slot == made.slot && $0.generation == made.generation }
        check(
            slot.map { $0.publicKey == made.publicKey } ?? true, "\(member).eval.pk", "It is not the key of the offer.")
        check(
            confirmation.evaluation == .evaluation(eval) && confirmation.slot == made.slot
                && confirmation.generation == made.generation && confirmation.n == made.n
                && confirmation.unl == made.unl && confirmation.did == one.receipt.did
                && StrictJSON.same(confirmation.issuer, bundle.issuer), "\(member).confirm",
            "It confirms another evaluation.")
        check(one.decision.content.unl == made.unl, "\(member).decision.unl", "It names another evaluation.")
        check(
            unlock.slot == made.slot && unlock.generation == made.generation && unlock.n == made.n
                && unlock.evaluatedAt == made.head.issuedAt
                && (-Self.tolerance..<300).contains(one.receipt.decidedAt - unlock.evaluatedAt)
                && unlock.evaluatedAt <= unlock.confirmedAt + Self.tolerance
                && unlock.confirmedAt <= one.receipt.decidedAt + Self.tolerance,
            "\(member).receipt.unlock", "It does not fit the evaluation.")
    }

    private mutating func establish(_ one: Case) {
        let (receipt, decision) = (one.receipt, one.decision.content)
        let txn = receipt.txn
        if decision.isBlind {
            report.established.append(.refusedBlindly(txn: txn, kid: receipt.kid, status: decision.status))
            report.notEstablished.append(.shown(txn: txn))
        } else if let document = one.document?.content, let status = document.status(named: decision.status) {
            report.established.append(
                .decided(
                    txn: txn, kid: receipt.kid, status: status.name, label: status.label,
                    texts: document.displayed(status: status, match: decision.match)))
        }
        if let unlock = receipt.unlock {
            report.established.append(.confirmed(txn: txn, slot: unlock.slot, evaluation: unlock.n))
            report.attested.append(.passwordCounted(txn: txn))
        }
        report.attested.append(.decidedAt(txn: txn, time: receipt.decidedAt))
        report.attested.append(.keyActive(txn: txn, kid: receipt.kid, since: receipt.since))
        if receipt.matched { report.attested.append(.numberMatched(txn: txn)) }
        report.attested.append(.audit(txn: txn, id: receipt.audit))
        if one.keys.policy(of: one.signer)?.password?.mode == .local {
            report.notEstablished.append(.localPassword(txn: txn))
        }
    }
}

extension EvidenceRequest {
    /// Reads the framed bytes of a request; `nil` when they are not one.
    init?(frame bytes: [UInt8]) {
        guard let end = bytes.firstIndex(of: 0) else { return nil }
        let label = String(decoding: bytes[..<end], as: UTF8.self)
        var fields: [[UInt8]] = []
        var rest = bytes[(end + 1)...]
        while !rest.isEmpty {
            guard rest.count >= 4 else { return nil }
            let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard rest.count >= length else { return nil }
            fields.append(Array(rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        switch label {
        case "tsp/1 details":
            guard fields.count == 1, let text = String(validating: fields[0], as: UTF8.self) else { return nil }
            self = .details(text)
        case "tsp/1 policy transaction":
            guard fields.count == 16 else { return nil }
            var texts: [String] = []
            for (index, field) in fields.enumerated() {
                let isOptional = [8, 9, 10, 11, 14, 15].contains(index)
                guard !isOptional || field.first == 1 || field == [0] else { return nil }
                guard let text = String(validating: isOptional ? Array(field.dropFirst()) : field, as: UTF8.self)
                else { return nil }
                texts.append(text)
            }
            self = .policyTransaction(texts)
        default: return nil
        }
    }
}
