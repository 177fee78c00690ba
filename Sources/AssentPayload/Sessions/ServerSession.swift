package import AssentCore
import Crypto
package import Foundation

/// A session at one node of the server: its keys, which numbers this node has seen, and when it ends. It authenticates
/// nobody: what a request may do is decided by what stands inside.
package struct ServerSession: Sendable {
    /// Without a message for so many seconds a session ends.
    package static let idleLimit: TimeInterval = 600
    /// It ends after so many seconds in any case.
    package static let lifetime = TimeInterval(HandshakeReply.lifetimeLimit)

    /// Whose credentials count inside of it.
    package let peer: PayloadPeer
    /// When a message that opened was last begun or ended.
    package private(set) var lastUse: Date
    // A node has very many of these, so it keeps no more of the secrets than messages need.
    private let id: [UInt8]
    private let request: SymmetricKey
    private let reply: SymmetricKey
    private let begun: Date
    private var running = 0
    /// Whether a message is running: then it is in use, for whatever that lasts.
    package var isRunning: Bool { running > 0 }
    private var window = NumberWindow()

    /// A session that was agreed on, or read from the database; `lastUse` is as the nodes know it.
    package init(_ secrets: PayloadSecrets, peer: PayloadPeer, begun: Date, lastUse: Date) {
        (id, request, reply) = (secrets.session, secrets.request, secrets.reply)
        (self.peer, self.begun, self.lastUse) = (peer, begun, lastUse)
    }

    /// Whether it takes messages. One that is running keeps it from being idle, for whatever it lasts.
    package func isLive(at now: Date) -> Bool {
        now < begun.addingTimeInterval(Self.lifetime)
            && (running > 0 || now < lastUse.addingTimeInterval(Self.idleLimit))
    }

    /// What its messages derive their keys with, made anew. It is as large as the rest of a session, so a node keeps it
    /// for those alone that are used now; to make it takes longer than what a message hashes.
    package var keys: SessionKeys { SessionKeys(session: id, request: request, reply: reply) }

    /// What opens the request that begins with `head`. The session is not used by that: anyone who sends bytes that do
    /// not open keeps no session alive, and spends no number.
    ///
    /// - Parameters:
    ///   - head: the request's.
    ///   - now: the time.
    ///   - keys: ``keys``, where they were kept.
    /// - Returns: what opens the request's chunks.
    /// - Throws: ``PayloadRefusal/malformed`` for a reply, ``PayloadRefusal/unknownSession`` for another session, or
    ///   when it has ended.
    package func opener(
        _ head: FrameHead, at now: Date, keys: SessionKeys? = nil
    ) throws(PayloadRefusal) -> FrameOpener {
        guard head.kind == .request else { throw .malformed }
        guard head.session == id, isLive(at: now) else { throw .unknownSession }
        return FrameOpener(head, keys: keys?.request ?? MessageKeys(request), bound: [])
    }

    /// Takes the number of a message whose first chunk has opened; ``end(at:)`` is due for it then.
    ///
    /// - Throws: ``PayloadRefusal/repeated``, ``PayloadRefusal/unknownSession``.
    package mutating func claim(_ number: UInt64, at now: Date) throws(PayloadRefusal) {
        guard isLive(at: now) else { throw .unknownSession }
        guard window.claim(number) else { throw .repeated }
        running += 1
        lastUse = max(lastUse, now)
    }

    /// The reply to a message has ended, or was aborted.
    package mutating func end(at now: Date) {
        guard running > 0 else { return }
        running -= 1
        lastUse = max(lastUse, now)
    }

    /// What seals the reply to the request that began with `head`; `keys` are ``keys``, where they were kept.
    package func sealer(
        replyTo head: FrameHead, keys: SessionKeys? = nil, random: some RandomSource
    ) -> FrameSealer {
        let reply = FrameHead(.reply, session: id, number: head.number, random: random)
        return FrameSealer(reply, keys: keys?.reply ?? MessageKeys(self.reply), bound: head.binding)
    }
}
