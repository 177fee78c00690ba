package import Crypto

/// Opens the chunks of one message behind its head, in whatever pieces they arrive. It keeps at most one chunk that is
/// not complete.
package struct FrameOpener {
    private var cipher: FrameCipher
    private var buffer: [UInt8] = []

    /// - Parameters:
    ///   - head: the message's.
    ///   - key: that of the direction.
    ///   - bound: ``FrameHead/binding`` of the request that a reply answers; empty for a request.
    package init(_ head: FrameHead, key: SymmetricKey, bound: [UInt8]) {
        cipher = FrameCipher(key, head, bound: bound)
    }

    /// Whether the first chunk was opened: the message is one of the session's peer.
    package private(set) var hasBegun = false

    /// Whether the last chunk was opened.
    package var hasEnded: Bool { cipher.hasEnded }

    /// The plaintext that `piece` completes.
    ///
    /// - Throws: ``PayloadError``; nothing of the message may be used any further then.
    package mutating func open(_ piece: some Collection<UInt8>) throws(PayloadError) -> [UInt8] {
        buffer += piece
        var plaintext: [UInt8] = []
        var rest = buffer[...]
        while let first = rest.first {
            guard !hasEnded, first <= 1 else { throw .malformedFrame }
            let head = rest.prefix(FrameCipher.chunkHeadLength)
            guard head.count == FrameCipher.chunkHeadLength else { break }
            let length = head.dropFirst().reduce(0) { $0 << 8 | Int($1) }
            guard FrameCipher.tagLength...FrameCipher.chunkLength + FrameCipher.tagLength ~= length else {
                throw .malformedFrame
            }
            let sealed = rest.dropFirst(FrameCipher.chunkHeadLength).prefix(length)
            guard sealed.count == length else { break }
            plaintext += try cipher.open(sealed, isLast: first == 1)
            hasBegun = true
            rest = rest.dropFirst(FrameCipher.chunkHeadLength + length)
        }
        // A chunk that comes byte by byte is not copied for each.
        if rest.count < buffer.count { buffer = Array(rest) }
        return plaintext
    }

    /// The peer says that this was all.
    ///
    /// - Throws: ``PayloadError/truncated`` when the last chunk has not come.
    package func finish() throws(PayloadError) {
        guard hasEnded else { throw .truncated }
    }
}
