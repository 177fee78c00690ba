package import AssentCore
package import Foundation

extension ClientSession {
    /// A call of the app.
    package struct Call: Hashable, Sendable {
        /// Names it among those of this session; a repetition is another call.
        package let id: Int
        /// Whether the layer of credentials can send it once more, with a new proof: it is safe (RFC 9110 §9.2.1), its
        /// body is there again, and it is not a repetition itself.
        package let mayRepeat: Bool

        package init(id: Int, mayRepeat: Bool) { (self.id, self.mayRepeat) = (id, mayRepeat) }
    }

    /// A static key of the server, as the client's own configuration has it.
    package struct Key: Hashable, Sendable {
        package let key: PayloadKey
        package let notAfter: Date

        package init(_ key: PayloadKey, notAfter: Date) { (self.key, self.notAfter) = (key, notAfter) }
    }

    /// What has come of a call that was sent, in the words of the page.
    package enum Answer: String, Hashable, Sendable, CaseIterable {
        case sealed = "a reply sealed for this request"
        case other = "anything else: plain, foreign, damaged, cut off, or none"
        case unknownSession = "`pe_unknown_session`"
        case staleConnection = "a kept connection had ended"
        case notSent = "there was no connection"
    }

    /// What has come of a handshake.
    package enum HandshakeResult: Sendable {
        /// ``ClientHandshake/finish(_:)`` has succeeded.
        case agreed(PayloadSecrets, expires: Int64)
        /// `retryAfter` is the reply's, in seconds.
        case refused(PayloadRefusal, retryAfter: Int? = nil)
        /// The reply was not one of a server that has the key.
        case notConfirmed
        case noAnswer
    }

    /// What the server says of the installation's registration.
    package enum Registration: Hashable, Sendable {
        case there
        case gone
        case unreadable
    }

    /// What has happened.
    package enum Event: Sendable {
        case begin(Call)
        /// The app does not want the call any more.
        case cancelled(Int)
        case answer(Int, Answer)
        /// `attempt` is that of the action.
        case handshake(attempt: Int, HandshakeResult)
        /// The time that was to be waited is over.
        case paused
        case registration(Registration)
        /// The configuration has these keys now.
        case keys([Key])
    }

    /// What is to be done.
    package enum Action: Hashable, Sendable {
        /// Make a handshake with this key. There is never more than one whose result counts.
        case handshake(attempt: Int, PayloadKey)
        /// Wait for so many seconds.
        case pause(seconds: Int)
        case readRegistration
        /// The call waits for the handshake.
        case wait(Int)
        case send(Int, Message)
        case handOver(Int)
        /// The layer of credentials begins the call again, as another one, with a new proof.
        case repeatAbove(Int)
        case giveUp(Int, Failure)
    }

    /// Why a call has no reply.
    package struct Failure: Error, Hashable, Sendable {
        /// What has gone wrong.
        package enum Reason: Hashable, Sendable {
            /// No sealed reply came.
            case noReply
            /// The server did not know the session.
            case unknownSession
            case notConnected
            /// The server has none of the keys, or none is valid any more.
            case noKey
            case proofRefused
            /// The installation is not registered any more.
            case notRegistered
            case busy
            /// What answered does not have the server's key.
            case notConfirmed
            /// The handshake had another answer, or none.
            case noHandshake
            /// Too many calls wait.
            case tooMany
        }

        package let reason: Reason
        /// Whether the server may have acted on the call. `false`: nothing of it was sent.
        package let mayHaveHadEffect: Bool

        package init(reason: Reason, mayHaveHadEffect: Bool) {
            (self.reason, self.mayHaveHadEffect) = (reason, mayHaveHadEffect)
        }
    }

    /// What a call is sealed with. Two are equal when session and number are.
    package struct Message: Hashable, Sendable {
        /// Counts the sessions.
        package let session: Int
        package let number: UInt64
        /// When the session was begun.
        package let begun: Date
        private let keys: SessionKeys

        init(session: Int, number: UInt64, begun: Date, keys: SessionKeys) {
            (self.session, self.number, self.begun, self.keys) = (session, number, begun, keys)
        }

        package static func == (left: Self, right: Self) -> Bool {
            (left.session, left.number) == (right.session, right.number)
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(session)
            hasher.combine(number)
        }

        /// Seals the request; once, as the number says.
        package func sealer(random: some RandomSource) -> FrameSealer {
            let head = FrameHead(.request, session: keys.session, number: number, random: random)
            return FrameSealer(head, keys: keys.request, bound: [])
        }

        /// Opens the reply that begins with `reply`.
        ///
        /// - Throws: ``PayloadError/foreignFrame`` for a head that is not one of a reply to `request`.
        package func opener(_ reply: FrameHead, to request: FrameHead) throws(PayloadError) -> FrameOpener {
            guard reply.kind == .reply, reply.session == keys.session, reply.number == number else {
                throw .foreignFrame
            }
            return FrameOpener(reply, keys: keys.reply, bound: request.binding)
        }
    }
}
