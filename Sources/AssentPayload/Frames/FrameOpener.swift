package import Crypto

/// Opens the chunks of one message behind its head, in whatever pieces they arrive. It keeps at most one chunk that is
/// not complete.
package struct FrameOpener: Sendable {
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
    package mutating func open(_ piece: ArraySlice<UInt8>) throws(PayloadError) -> [UInt8] {
        // Not of any collection: other modules would call generic code, which takes longer.
        var rest = piece
        var plaintext: [UInt8] = []
        // First the chunk that an earlier piece began: no more is added to it than it lacks.
        while !buffer.isEmpty, !rest.isEmpty {
            let wanted = try chunkLength(at: buffer[...]) ?? FrameCipher.chunkHeadLength
            let more = rest.prefix(wanted - buffer.count)
            buffer += more
            rest = rest.dropFirst(more.count)
            guard let length = try chunkLength(at: buffer[...]), buffer.count == length else { continue }
            plaintext.reserveCapacity(length + rest.count)
            try open(chunk: buffer[...], into: &plaintext)
            buffer.removeAll(keepingCapacity: true)
        }
        while let length = try chunkLength(at: rest), rest.count >= length {
            if plaintext.isEmpty { plaintext.reserveCapacity(rest.count) }
            try open(chunk: rest.prefix(length), into: &plaintext)
            rest = rest.dropFirst(length)
        }
        buffer += rest
        return plaintext
    }

    /// How long the chunk is that begins here, with its head; `nil` while its head is not complete.
    ///
    /// - Throws: ``PayloadError/malformedFrame`` for a head that is not possible.
    package func chunkLength(at bytes: ArraySlice<UInt8>) throws(PayloadError) -> Int? {
        guard let first = bytes.first else { return nil }
        guard !hasEnded, first <= 1 else { throw .malformedFrame }
        let head = bytes.prefix(FrameCipher.chunkHeadLength)
        guard head.count == FrameCipher.chunkHeadLength else { return nil }
        let length = head.dropFirst().reduce(0) { $0 << 8 | Int($1) }
        guard FrameCipher.tagLength...FrameCipher.chunkLength + FrameCipher.tagLength ~= length else {
            throw .malformedFrame
        }
        return FrameCipher.chunkHeadLength + length
    }

    private mutating func open(
        chunk: ArraySlice<UInt8>, into plaintext: inout [UInt8]
    ) throws(PayloadError) {
        try cipher.open(chunk.dropFirst(FrameCipher.chunkHeadLength), isLast: chunk.first == 1, into: &plaintext)
        hasBegun = true
    }

    /// The peer says that this was all.
    ///
    /// - Throws: ``PayloadError/truncated`` when the last chunk has not come.
    package func finish() throws(PayloadError) {
        guard hasEnded else { throw .truncated }
    }
}
