/// What becomes of a call when it is resumed, decided without I/O. The table is in `docs/resources.md`.
struct Resumption: Sendable, Hashable {
    enum Connection: String, CaseIterable, Sendable {
        /// The call was suspended before it had one.
        case none
        case lives
        /// It ended while the call was suspended, or before more had come.
        case ended
    }

    enum Action: Sendable, Hashable {
        case goOn
        /// Send the call as it was; what has come of the reply is dropped.
        case startOver
        /// Ask for what is missing, if the content is still the same (RFC 9110 §13.1.5 and §14.2).
        case askForRest
        /// The connection is lost; what is known of the reply is told.
        case fail
    }

    let connection: Connection
    /// Whether the method asks for no change, and the content can be sent again.
    let isRepeatable: Bool
    /// Whether some of the reply is in the file of a download.
    let hasStored: Bool
    /// Whether the server can send the rest of just this content: it named a strong `ETag` and `Accept-Ranges: bytes`.
    let isContinuable: Bool

    var action: Action {
        guard connection == .ended else { return .goOn }
        guard isRepeatable else { return .fail }
        guard hasStored else { return .startOver }
        return isContinuable ? .askForRest : .fail
    }
}
