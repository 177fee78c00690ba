import Testing

/// What each door answers to each kind of credential, as `docs/sender-constraints.md` shows it.
struct DoorRow: Sendable, CustomTestStringConvertible {
    /// What a request has to say who sends it.
    enum Credential: String, CaseIterable, Sendable {
        case none = "nothing"
        case sessionField = "a session in its field"
        case sessionCookie = "a session in the cookie"
        case basicAndSession = "`Authorization` of another scheme, and a session"
        case bearer = "an unbound token as `Bearer`"
        case bearerAndProof = "an unbound token as `Bearer`, with a proof"
        case bearerAndSession = "an unbound token as `Bearer`, and a session"
        case unknownBearer = "an unknown token as `Bearer`"
        case unknownBearerAndSession = "an unknown token as `Bearer`, and a session"
        case unboundAsDPoP = "an unbound token as `DPoP`, with a proof"
        case unknownAsDPoP = "an unknown token as `DPoP`, with a proof"
        case right = "a bound token as `DPoP`, with its proof"
        case rightAndSession = "the same, and a session"
        case boundAsBearer = "a bound token as `Bearer`"
        case boundAsBearerAndProof = "a bound token as `Bearer`, with its proof"
        case noProof = "a bound token as `DPoP`, without a proof"
        case noProofAndSession = "the same, and a session beside it"
        case twoProofs = "… with two proofs"
        case otherKey = "… with another key's proof"
        case otherToken = "… with a proof for another token"
        case otherURL = "… with a proof for another address"
        case otherMethod = "… with a proof for another method"
        case repeated = "… with a proof that was used before"
        case oldProof = "… with an old proof without a nonce"
        case foreignNonce = "… with the other server's nonce"
        case twoFields = "two `Authorization` fields"
        case boundSession = "a bound session in its field, with its proof"
        case boundSessionInCookie = "a bound session in the cookie, with its proof"
        case boundSessionAlone = "a bound session, without a proof"
        case boundSessionTwoProofs = "a bound session, with two proofs"
        case boundSessionOtherKey = "a bound session, with another key's proof"
        case boundSessionOtherSession = "a bound session, with a proof for another session"
        case boundSessionNoHash = "a bound session, with a proof for none"
        case boundSessionRepeated = "a bound session, with a proof that was used before"
        case boundSessionOldProof = "a bound session, with an old proof without a nonce"
    }

    let credential: Credential

    /// What each door says, in the order of ``ResourceDoor``.
    let answers: [String]

    var testDescription: String { credential.rawValue }

    init(_ credential: Credential, _ answers: String...) {
        self.credential = credential
        self.answers = answers
    }

    private static let proof = "401 `DPoP` `invalid_dpop_proof`"
    private static let nonce = "401 `DPoP` `use_dpop_nonce`"
    private static let key = "401 `DPoP` `invalid_token`"
    private static let token = "401 `Bearer` `invalid_token`"

    /// A row that all doors answer alike.
    private init(_ credential: Credential, everywhere answer: String) {
        self.credential = credential
        answers = ResourceDoor.allCases.map { _ in answer }
    }

    /// A row about sessions, which two of the doors do not look at.
    private init(session credential: Credential, _ answer: String) {
        self.credential = credential
        answers = ResourceDoor.allCases.map { $0.takesSessions ? answer : "401 `Bearer`" }
    }

    static let rows: [DoorRow] = [
        DoorRow(.none, "401 `Bearer`", "401 `SSOADVICE`", "401 `DPoP`", "401 `Bearer`", "401 `Bearer`"),
        DoorRow(.sessionField, "401 `Bearer`", "yes", "401 `DPoP`", "401 `Bearer`", "yes"),
        DoorRow(.sessionCookie, "401 `Bearer`", "yes", "401 `DPoP`", "401 `Bearer`", "yes"),
        DoorRow(.basicAndSession, "401 `Bearer`", "yes", "401 `DPoP`", "401 `Bearer`", "401 `Bearer`"),
        DoorRow(.bearer, "yes", "yes", key, "yes", "yes"),
        DoorRow(.bearerAndProof, "yes", "yes", key, "yes", "yes"),
        DoorRow(.bearerAndSession, "yes", "yes", key, "yes", "yes"),
        DoorRow(.unknownBearer, token, token, key, "401 `Bearer`", "401 `Bearer`"),
        DoorRow(.unknownBearerAndSession, token, token, key, "401 `Bearer`", "401 `Bearer`"),
        DoorRow(.unboundAsDPoP, everywhere: key),
        DoorRow(.unknownAsDPoP, everywhere: key),
        DoorRow(.right, everywhere: "yes"),
        DoorRow(.rightAndSession, everywhere: "yes"),
        DoorRow(.boundAsBearer, everywhere: key),
        DoorRow(.boundAsBearerAndProof, everywhere: key),
        DoorRow(.noProof, everywhere: proof),
        DoorRow(.noProofAndSession, everywhere: proof),
        DoorRow(.twoProofs, everywhere: proof),
        DoorRow(.otherKey, everywhere: key),
        DoorRow(.otherToken, everywhere: proof),
        DoorRow(.otherURL, everywhere: proof),
        DoorRow(.otherMethod, everywhere: proof),
        DoorRow(.repeated, everywhere: proof),
        DoorRow(.oldProof, everywhere: nonce),
        DoorRow(.foreignNonce, everywhere: nonce),
        DoorRow(.twoFields, "400 `invalid_request`", key, key, key, key),
        DoorRow(session: .boundSession, "yes"),
        DoorRow(session: .boundSessionInCookie, "yes"),
        DoorRow(session: .boundSessionAlone, proof),
        DoorRow(session: .boundSessionTwoProofs, proof),
        DoorRow(session: .boundSessionOtherKey, proof),
        DoorRow(session: .boundSessionOtherSession, proof),
        DoorRow(session: .boundSessionNoHash, proof),
        DoorRow(session: .boundSessionRepeated, proof),
        DoorRow(session: .boundSessionOldProof, nonce),
    ]

    /// The table as the page has it.
    static var markdown: String {
        let doors = ResourceDoor.allCases.map(\.rawValue)
        let head = [
            "| what the request has | " + doors.joined(separator: " | ") + " |",
            "|---" + String(repeating: "|---", count: doors.count) + "|",
        ]
        let lines = rows.map { "| \($0.credential.rawValue) | " + $0.answers.joined(separator: " | ") + " |" }
        return (head + lines).joined(separator: "\n") + "\n"
    }
}
