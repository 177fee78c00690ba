import Crypto

/// What the messages of one session derive their keys with, in both directions. It is a class because each message
/// refers to it.
package final class SessionKeys: Sendable {
    /// The session's id.
    let session: [UInt8]
    let request: MessageKeys
    let reply: MessageKeys

    convenience init(_ secrets: PayloadSecrets) {
        self.init(session: secrets.session, request: secrets.request, reply: secrets.reply)
    }

    init(session: [UInt8], request: SymmetricKey, reply: SymmetricKey) {
        self.session = session
        self.request = MessageKeys(request)
        self.reply = MessageKeys(reply)
    }
}
