/// What a client's messages of one session are sealed and opened with. It is a class because each message refers to it.
final class SessionKeys: Sendable {
    /// The session's id.
    let session: [UInt8]
    let request: MessageKeys
    let reply: MessageKeys

    init(_ secrets: PayloadSecrets) {
        session = secrets.session
        request = MessageKeys(secrets.request)
        reply = MessageKeys(secrets.reply)
    }
}
