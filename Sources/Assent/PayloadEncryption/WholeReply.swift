import AssentCore
import AssentPayload
import HTTPTypes

/// A sealed reply that has come at once, in one chunk, and is as it should be, as nearly all are. It is opened as it
/// lies there: nobody reads it on, so it needs nothing of what ``OpenedReply`` keeps for that.
struct WholeReply {
    /// The reply with its content, which is in memory as that of a short plain one.
    let reply: HTTPReply
    /// The bytes of the message.
    let length: Int

    /// `nil` for any other reply, also for one that is damaged or foreign: ``OpenedReply`` reads it, and says what is
    /// wrong.
    ///
    /// - Parameters:
    ///   - sealed: what came.
    ///   - message: what the request was sealed with.
    ///   - request: the head of the request.
    ///   - call: the call that it answers.
    init?(_ sealed: HTTPReply, _ message: ClientSession.Message, to request: FrameHead, of call: HTTPCall) {
        guard SealedCall.isSealed(sealed.response), let bytes = sealed.body.inMemory,
            let head = try? FrameHead(bytes.prefix(FrameHead.length)),
            var opener = try? message.opener(head, to: request)
        else { return nil }
        let chunk = bytes.dropFirst(FrameHead.length)
        guard let chunkLength = try? opener.chunkLength(at: chunk), chunkLength == chunk.count,
            let plaintext = try? opener.open(chunk), opener.hasEnded, let parts = Self.parts(of: plaintext),
            case .response(let response)? = parts.first
        else { return nil }
        var content: [UInt8] = []
        for part in parts.dropFirst() {
            guard case .content(let piece) = part else { return nil }
            content.join(piece)
        }
        let said = response.contentLength(toHEAD: call.request.method == .head)
        guard content.count <= call.limits.replyBytes, said ?? content.count == content.count else { return nil }
        reply = HTTPReply(response, body: HTTPBody(content))
        length = bytes.count
    }

    private static func parts(of plaintext: [UInt8]) -> [BinaryHTTPReader.Part]? {
        var reader = BinaryHTTPReader(.reply)
        guard let parts = try? reader.read(plaintext), let last = try? reader.finish() else { return nil }
        return parts + last
    }
}

extension HTTPResponse {
    /// How many bytes of content it says that it has; `nil` when it says nothing of them.
    func contentLength(toHEAD isHEAD: Bool) -> Int? {
        // What a reply without content says of its length is that of another reply (RFC 9110 §8.6).
        if isHEAD || [204, 304].contains(status.code) { return 0 }
        return headerFields[.contentLength].flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }
}
