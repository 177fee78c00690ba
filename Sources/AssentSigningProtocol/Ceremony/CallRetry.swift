/// What a device does after a call that did not succeed: the table of `docs/transaction-signing.md`, "When a call
/// fails". It holds for one call, and with a stored signature for one decision.
package struct CallRetry: Hashable, Sendable {
    /// What has come of a call, by its name in the table.
    package enum Failure: String, Hashable, Sendable, CaseIterable {
        /// There is no nonce of the server, or no certified key to encrypt to.
        case unprepared = "nothing to send with"
        /// No connection, no reply, or one that is not of this protocol.
        case noAnswer = "no answer"
        /// Nothing happened.
        case busy = "`busy`"
        /// Something may have happened.
        case unavailable = "`unavailable`"
        /// The nonce of the proof is too old; the reply brings another one.
        case useNonce = "`use_nonce`"
        /// The request is encrypted to a key that is not used any more.
        case unknownKey = "`unknown_key`"
        /// The reply is signed by a key that this device has no certificate of.
        case uncertified = "a reply by an uncertified key"
        /// Other keys have taken the place of those that proved or signed.
        case keyRetired = "`key_retired`"
        /// The key provider does not have a key of the container.
        case keyGone = "a key is gone here"
        case rateLimited = "`rate_limited`"
        /// The evaluation behind a signature is not confirmed, is used, or is too old.
        case unlockRequired = "`unlock_required`"
        /// The document was not fetched with the keys that decide.
        case notFetched = "`tx_not_fetched`"
        /// Anything else that the server says.
        case refused = "another refusal"

        /// What a refusal of the server means for a repetition: the row with its name, if there is one.
        package init(_ code: SigningErrorCode) { self = Self(rawValue: "`\(code.rawValue)`") ?? .refused }
    }

    /// What a device does then, in the words of the table.
    package enum Next: String, Hashable, Sendable, CaseIterable {
        /// The same body with a new proof.
        case send = "sends the same again"
        /// The configuration has nonce, certificates and successors of the identity key.
        case refreshAndSend = "reads the configuration and sends the same again"
        /// Nothing is sent: the reply that came is verified with the newer certificates.
        case refreshAndRead = "reads the configuration and the reply again"
        /// The new keys are taken if the server signs that they are the container's, or another process took them.
        case takeNewKeys = "takes the new keys, if there are any, and begins again with them"
        /// The same answer of the user.
        case signAgain = "signs the same answer again and sends that"
        /// The app hears of it.
        case fail = "stops with this error"
    }

    /// What is sent besides the call's own proof.
    package enum Signature: String, Hashable, Sendable, CaseIterable {
        /// Nothing that was signed before this call.
        case fresh = "–"
        /// A signature that was stored before.
        case stored = "stored before"
        /// One that was stored before, by a key that was replaced since.
        case replaced = "stored before, by a key that was replaced"
    }

    private let signature: Signature
    private var sendsLeft: Int
    private var hasNonce = false
    private var isRefreshed = false
    private var hasNewKeys = false
    private var isSignedAgain = false

    /// Nothing has failed yet. Until an answer comes, the same request may be sent `sends` more times.
    package init(sends: Int, signature: Signature = .fresh) {
        sendsLeft = sends
        self.signature = signature
    }

    /// What is done after a failure. Each kind of repetition is made once; only a call without an answer may be sent
    /// several times, and each time it may need a nonce and a configuration again.
    package mutating func next(after failure: Failure) -> Next {
        switch failure {
        case .noAnswer, .busy, .unavailable:
            guard sendsLeft > 0 else { return .fail }
            sendsLeft -= 1
            (hasNonce, isRefreshed) = (false, false)
            return .send
        case .useNonce: return Self.once(&hasNonce, .send)
        case .unprepared, .unknownKey: return Self.once(&isRefreshed, .refreshAndSend)
        case .uncertified: return Self.once(&isRefreshed, .refreshAndRead)
        case .unlockRequired where signature != .fresh: return Self.once(&isSignedAgain, .signAgain)
        case .keyRetired where signature == .replaced, .notFetched where signature == .replaced:
            return Self.once(&isSignedAgain, .signAgain)
        case .keyRetired, .keyGone: return Self.once(&hasNewKeys, .takeNewKeys)
        case .unlockRequired, .notFetched, .rateLimited, .refused: return .fail
        }
    }

    private static func once(_ isDone: inout Bool, _ next: Next) -> Next {
        guard !isDone else { return .fail }
        isDone = true
        return next
    }
}
