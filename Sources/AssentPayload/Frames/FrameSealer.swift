package import Crypto

/// Seals one message, in pieces as they come.
package struct FrameSealer {
    package let head: FrameHead
    private var cipher: FrameCipher
    private var isOpened = false
    /// What does not fill a chunk yet.
    private var rest: [UInt8] = []

    /// - Parameters:
    ///   - head: the message's.
    ///   - key: that of the direction.
    ///   - bound: ``FrameHead/binding`` of the request that a reply answers; empty for a request.
    package init(_ head: FrameHead, key: SymmetricKey, bound: [UInt8]) {
        self.head = head
        cipher = FrameCipher(key, head, bound: bound)
    }

    /// The sealed bytes that can be sent once `piece` is there. Short pieces are kept until a chunk is full, or
    /// ``flush()``.
    package mutating func seal(_ piece: some Collection<UInt8>) throws(PayloadError) -> [UInt8] {
        rest += piece
        var sealed: [UInt8] = []
        // One that is exactly full may be the last.
        while rest.count > FrameCipher.chunkLength {
            sealed += try chunk(rest.prefix(FrameCipher.chunkLength), isLast: false)
            rest.removeFirst(FrameCipher.chunkLength)
        }
        return sealed
    }

    /// What was kept back, as a shorter chunk: a stream's reader waits for it.
    package mutating func flush() throws(PayloadError) -> [UInt8] {
        guard !rest.isEmpty else { return [] }
        defer { rest = [] }
        return try chunk(rest[...], isLast: false)
    }

    /// The end of the message.
    package mutating func finish() throws(PayloadError) -> [UInt8] {
        defer { rest = [] }
        return try chunk(rest[...], isLast: true)
    }

    private mutating func chunk(_ plaintext: ArraySlice<UInt8>, isLast: Bool) throws(PayloadError) -> [UInt8] {
        let sealed = try cipher.seal(plaintext, isLast: isLast)
        guard !isOpened else { return sealed }
        isOpened = true
        return head.bytes + sealed
    }
}
