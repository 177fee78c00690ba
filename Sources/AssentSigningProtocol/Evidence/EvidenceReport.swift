import AssentCore

/// What a bundle of evidence proves, what it only claims, and what is wrong with it.
///
/// Its sentences quote the bundle: escape them before they reach a terminal (``/AssentCore/DisplayText``).
package struct EvidenceReport: Sendable {
    /// The identity key that everything was judged by; `nil` when there is none that counts.
    package var root: KeyThumbprint?

    /// Whether the verifier has named an identity key. A bundle cannot vouch for its own.
    package let hasTrustAnchor: Bool

    package internal(set) var established: [EvidenceFinding] = []

    package internal(set) var attested: [EvidenceAttestation] = []

    package internal(set) var notEstablished: [EvidenceGap] = EvidenceGap.always

    package internal(set) var contradicted: [EvidenceContradiction] = []

    /// 0: the root is trusted and nothing is contradicted. 64: nobody said which root is trusted. 2: otherwise.
    package var exitStatus: Int32 {
        guard hasTrustAnchor else { return 64 }
        return contradicted.isEmpty && root != nil ? 0 : 2
    }
}

/// Something that follows from signatures and hashes; ``sentence`` says what each case is.
package enum EvidenceFinding: Hashable, Sendable {
    case certified(identity: KeyThumbprint)
    case keySet(sequence: Int, keys: [KeyThumbprint])
    case endorsed(sequence: Int, by: KeyThumbprint)
    case decided(txn: SigningID, kid: KeyThumbprint, status: String, label: String, texts: [String])
    case refusedBlindly(txn: SigningID, kid: KeyThumbprint, status: String)
    case sameDecision(txn: SigningID, device: KeyThumbprint)
    case request(txn: SigningID, EvidenceRequest)
    case confirmed(txn: SigningID, slot: PasswordSlot, evaluation: Int)

    package var sentence: String {
        switch self {
        case .certified(let identity):
            "The server's messages are signed by keys that the identity key \(identity) certified."
        case .keySet(let sequence, let keys):
            "Key set \(sequence) of the container is signed by its device key, and each key proved its possession: "
                + "\(keys.map(\.text).joined(separator: ", "))."
        case .endorsed(let sequence, let key): "The old key \(key) endorsed key set \(sequence)."
        case .decided(let txn, let kid, let status, let label, let texts):
            "The key \(kid) signed \"\(status)\" (\(Self.quoted([label]))) for transaction \(txn), "
                + "for the document with these texts: \(Self.quoted(texts.filter { !$0.isEmpty }))"
        case .refusedBlindly(let txn, let kid, let status):
            "The key \(kid) signed \"\(status)\" for transaction \(txn) without its document."
        case .sameDecision(let txn, let device): "The device key \(device) signed the same decision about \(txn)."
        case .request(let txn, .details(let text)): "The request of transaction \(txn) is: \(Self.asked(text))"
        case .request(let txn, .policyTransaction(let fields)):
            "The request of transaction \(txn) is the gateway's: \(Self.quoted(fields))"
        case .confirmed(let txn, let slot, let evaluation):
            "A key of the slot \(slot.rawValue) confirmed evaluation \(evaluation) for transaction \(txn)."
        }
    }

    /// Texts one after the other, each in JSON's quotation marks. A relying party has written some of them: one must
    /// not look like several, as if the user had seen another amount.
    private static func quoted(_ texts: [String]) -> String {
        texts.map { JSONValue.string($0).serialized() }.joined(separator: ", ")
    }

    /// What was asked. JSON says itself where it ends. The text of a device's own record does not, and its user has
    /// written it: it could go on like a sentence of this report.
    private static func asked(_ text: String) -> String {
        (try? JSONValue.parse(text)) == nil ? quoted([text]) : text
    }
}

/// What was asked, as far as it can be read.
package enum EvidenceRequest: Hashable, Sendable {
    /// The text `authorization_details`, or the text of a device's own record.
    case details(String)
    /// The fields of a policy transaction; an absent one is empty.
    case policyTransaction([String])
}

/// Something that only the server says; ``sentence`` says what each case is.
package enum EvidenceAttestation: Hashable, Sendable {
    case user(sub: String, name: String)
    case decidedAt(txn: SigningID, time: Int)
    case keyActive(txn: SigningID, kid: KeyThumbprint, since: Int)
    case numberMatched(txn: SigningID)
    case passwordCounted(txn: SigningID)
    case audit(txn: SigningID, id: String)

    package var sentence: String {
        switch self {
        case .user(let sub, let name): "The keys belonged to the user \(sub) (\(name))."
        case .decidedAt(let txn, let time): "Transaction \(txn) was decided at \(time) (seconds since 1970)."
        case .keyActive(let txn, let kid, let since):
            "The key \(kid) was active when it decided \(txn), since \(since) (seconds since 1970)."
        case .numberMatched(let txn): "The number typed for transaction \(txn) was right."
        case .passwordCounted(let txn): "The tries of the PIN were counted for transaction \(txn)."
        case .audit(let txn, let id): "The audit record of transaction \(txn) is \(id)."
        }
    }
}

/// Something that the bundle does not show; ``sentence`` says what each case is.
package enum EvidenceGap: Hashable, Sendable {
    case person
    case keyIsTheUsers
    case screen
    case time
    case localPassword(txn: SigningID)
    case samePerson(sequence: Int)
    case request(txn: SigningID)
    case shown(txn: SigningID)

    package static let always: [EvidenceGap] = [.person, .keyIsTheUsers, .screen, .time]

    package var sentence: String {
        switch self {
        case .person: "Who the person in front of the device was."
        case .keyIsTheUsers: "That the key is the user's, and not one of the server's own."
        case .screen: "The picture on the screen."
        case .time: "The time, if a key of the server was ever stolen (there is no outside timestamp)."
        case .localPassword(let txn): "That the PIN was known for transaction \(txn): only the device checked it."
        case .samePerson(let sequence):
            "That key set \(sequence) belongs to the same person as the one before: no old key for approving signed it."
        case .request(let txn): "The request of transaction \(txn): it is not in the bundle."
        case .shown(let txn): "The text that was shown for transaction \(txn): it was refused without its document."
        }
    }
}

/// A check that failed.
package struct EvidenceContradiction: Hashable, Sendable {
    /// Where, as a path in the bundle, for example `transactions[0].receipt.dh`.
    package let member: String

    package let reason: String

    package var sentence: String { "\(member): \(reason)" }
}
