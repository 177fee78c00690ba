import AssentCore
import HTTPTypes

/// The newest nonce that each server gave (RFC 9449 §8, §9), in memory: a nonce lives for minutes, and a new process
/// gets one with its first reply.
final class NonceMemory: Sendable {
    /// Whose nonces they are: each server knows its own alone. An authorization server and a resource may stand behind
    /// one origin.
    struct Server: Sendable, Hashable {
        enum Role: Sendable, Hashable {
            /// The authorization server, with its token and userinfo endpoints.
            case authorizationServer
            case resource
        }

        let origin: Origin
        let role: Role
    }

    /// How many servers are remembered; the one that was heard of longest ago goes first.
    static let serverLimit = 32

    private let nonces = Locked<[(server: Server, nonce: String)]>([])

    /// The newest nonce of a server; `nil` when it gave none.
    func newest(for server: Server) -> String? {
        nonces.withLock { all in all.last { $0.server == server }?.nonce }
    }

    /// Notes the nonce of a reply, of whatever status.
    ///
    /// - Returns: the nonce; `nil` when there is none, several, or one with characters that it cannot have.
    @discardableResult
    func take(from fields: HTTPFields, of server: Server) -> String? {
        guard let nonce = fields.givenNonce else { return nil }
        nonces.withLock { all in
            all.removeAll { $0.server == server }
            all.append((server, nonce))
            if all.count > Self.serverLimit { all.removeFirst() }
        }
        return nonce
    }
}

/// Whether a request with a proof is sent a second time: a value without I/O, which is told what the server answered,
/// or that a kept connection had ended.
///
/// A server that wants a nonce has looked at the proof and at nothing else (RFC 9449 §8, §9), so the same request may
/// go out again, also one that is otherwise sent once. It goes out with a nonce that it did not have before, and only
/// once more: a server that is never content must not keep us busy. Where a kept connection had ended nobody knows
/// what the server has seen, so only a request that asks for no change goes out once more.
struct ProofRound {
    /// The nonce for the next sending.
    private(set) var nonce: String?
    private var mayRepeat: Bool
    private var mayRepeatUnanswered: Bool

    init(nonce: String?, mayRepeat: Bool = true, isHarmless: Bool = false) {
        self.nonce = nonce
        self.mayRepeat = mayRepeat
        mayRepeatUnanswered = mayRepeat && isHarmless
    }

    /// The server answered; returns whether to send again.
    mutating func answered(wantsNonce: Bool, given: String?) -> Bool {
        guard wantsNonce, mayRepeat, let given, given != nonce else { return false }
        mayRepeat = false
        nonce = given
        return true
    }

    /// There is no answer, since a kept connection had ended, or none that was sealed; returns whether to send again.
    mutating func hadNoReply() -> Bool {
        defer { mayRepeatUnanswered = false }
        return mayRepeatUnanswered
    }
}
