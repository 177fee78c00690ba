package import Crypto

/// Seals one message, in pieces as they come.
package struct FrameSealer: Sendable {
    package let head: FrameHead
    private var cipher: FrameCipher
    private var isOpened = false
    /// What does not fill a chunk yet.
    private(set) var rest: [UInt8] = []

    /// Up to this size the place of ``rest`` is kept while nothing lies in it.
    private static let idlePlace = 4096

    /// - Parameters:
    ///   - head: the message's.
    ///   - key: that of the direction.
    ///   - bound: ``FrameHead/binding`` of the request that a reply answers; empty for a request.
    package init(_ head: FrameHead, key: SymmetricKey, bound: [UInt8]) {
        self.init(head, keys: MessageKeys(key), bound: bound)
    }

    /// The same for a direction that has more messages.
    package init(_ head: FrameHead, keys: MessageKeys, bound: [UInt8]) {
        self.head = head
        cipher = FrameCipher(keys, head, bound: bound)
    }

    /// The sealed bytes that can be sent once `piece` is there. Short pieces are kept until a chunk is full, or
    /// ``flush()``.
    package mutating func seal(_ piece: some Collection<UInt8>) throws(PayloadError) -> [UInt8] {
        // Nothing is copied if it is an array.
        let bytes = Array(piece)
        guard rest.count + bytes.count > FrameCipher.chunkLength else {
            // One that is exactly full may be the last.
            if rest.isEmpty { rest = bytes } else { rest += bytes }
            return []
        }
        var sealed: [UInt8] = []
        let chunks = (rest.count + bytes.count - 1) / FrameCipher.chunkLength
        sealed.reserveCapacity(headLeft + chunks * (FrameCipher.chunkLength + Self.added))
        var left = bytes[...]
        if !rest.isEmpty {
            let more = left.prefix(FrameCipher.chunkLength - rest.count)
            // Nothing is added to what is full: it may be the caller's array, which would be copied.
            if !more.isEmpty { rest += more }
            left = left.dropFirst(more.count)
            try seal(chunk: rest[...], isLast: false, into: &sealed)
            // The next chunk is put together in the same place.
            rest.removeAll(keepingCapacity: !more.isEmpty)
        }
        while left.count > FrameCipher.chunkLength {
            try seal(chunk: left.prefix(FrameCipher.chunkLength), isLast: false, into: &sealed)
            left = left.dropFirst(FrameCipher.chunkLength)
        }
        if left.count == bytes.count { rest = bytes } else { rest += left }
        return sealed
    }

    /// What was kept back, as a shorter chunk: a stream's reader waits for it.
    package mutating func flush() throws(PayloadError) -> [UInt8] {
        guard !rest.isEmpty else { return [] }
        return try sealRest(isLast: false)
    }

    /// The end of the message.
    package mutating func finish() throws(PayloadError) -> [UInt8] {
        try sealRest(isLast: true)
    }

    /// The end of the message, with the last of its plaintext.
    package mutating func finish(with piece: [UInt8]) throws(PayloadError) -> [UInt8] {
        var sealed = try seal(piece)
        sealed.join(try finish())
        return sealed
    }

    private mutating func sealRest(isLast: Bool) throws(PayloadError) -> [UInt8] {
        defer { rest = [] }
        var sealed: [UInt8] = []
        sealed.reserveCapacity(headLeft + rest.count + Self.added)
        try seal(chunk: rest[...], isLast: isLast, into: &sealed)
        return sealed
    }

    private mutating func seal(
        chunk plaintext: ArraySlice<UInt8>, isLast: Bool, into sealed: inout [UInt8]
    ) throws(PayloadError) {
        if !isOpened { sealed += head.bytes }
        isOpened = true
        try cipher.seal(plaintext, isLast: isLast, into: &sealed)
    }

    // MARK: - From where the bytes lie to where they are sent from

    /// Hands the sealed bytes to `write` that can be sent once `piece` is there. Of `piece` no byte is copied but what
    /// is kept for the next chunk, and of the others none before `write` has them.
    ///
    /// A chunk is sealed as soon as it is full, while the function of an array keeps one that may be the last: that
    /// would copy all of a content whose pieces are as long as a chunk. So something must come behind it, as the end
    /// of a content does.
    package mutating func seal(
        _ piece: UnsafeRawBufferPointer, _ write: (UnsafeRawBufferPointer) -> Void
    ) throws(PayloadError) {
        var left = piece
        if !rest.isEmpty, rest.count + left.count >= FrameCipher.chunkLength {
            let more = UnsafeRawBufferPointer(rebasing: left.prefix(FrameCipher.chunkLength - rest.count))
            rest.append(contentsOf: more)
            left = UnsafeRawBufferPointer(rebasing: left.dropFirst(more.count))
            try sealRest(write)
        }
        while left.count >= FrameCipher.chunkLength {
            let chunk = UnsafeRawBufferPointer(rebasing: left.prefix(FrameCipher.chunkLength))
            try seal(chunk: chunk, write)
            left = UnsafeRawBufferPointer(rebasing: left.dropFirst(chunk.count))
        }
        rest.append(contentsOf: left)
    }

    /// Hands what was kept back to `write`, as ``flush()`` returns it. A large place is given back: a stream may wait
    /// for its next piece for minutes, and thousands of streams may do so.
    package mutating func flush(_ write: (UnsafeRawBufferPointer) -> Void) throws(PayloadError) {
        if !rest.isEmpty { try sealRest(write) }
        if rest.capacity > Self.idlePlace { rest = [] }
    }

    /// The place of what was kept stays for the next chunk.
    private mutating func sealRest(_ write: (UnsafeRawBufferPointer) -> Void) throws(PayloadError) {
        var chunk: [UInt8] = []
        swap(&chunk, &rest)
        defer { swap(&chunk, &rest) }
        try chunk.withUnsafeBufferPointer { (bytes: UnsafeBufferPointer<UInt8>) throws(PayloadError) -> Void in
            try seal(chunk: UnsafeRawBufferPointer(bytes), write)
        }
        chunk.removeAll(keepingCapacity: true)
    }

    /// Seals a chunk that is not the last.
    private mutating func seal(
        chunk plaintext: UnsafeRawBufferPointer, _ write: (UnsafeRawBufferPointer) -> Void
    ) throws(PayloadError) {
        if !isOpened { head.bytes.withUnsafeBytes { write($0) } }
        isOpened = true
        try cipher.seal(plaintext, write)
    }

    // MARK: - Lengths

    /// How long the whole message is when its plaintext has `count` bytes and nothing is flushed.
    package static func messageLength(_ count: Int) -> Int {
        let chunks = max(1, (count + FrameCipher.chunkLength - 1) / FrameCipher.chunkLength)
        return FrameHead.length + count + chunks * added
    }

    /// What a chunk adds to its plaintext.
    private static let added = FrameCipher.chunkHeadLength + FrameCipher.tagLength

    /// What is still to be sent of the head.
    private var headLeft: Int { isOpened ? 0 : FrameHead.length }

    /// How many sealed bytes can be sent once `count` more bytes are there, which are sealed from where they lie: those
    /// of each chunk that is full then. With `isFlushed` those of all that is there.
    package func sealedLength(adding count: Int, isFlushed: Bool = false) -> Int {
        let all = rest.count + count
        let full = all / FrameCipher.chunkLength
        let sealed = isFlushed ? all : full * FrameCipher.chunkLength
        guard sealed > 0 else { return 0 }
        let chunks = sealed == full * FrameCipher.chunkLength ? full : full + 1
        return headLeft + sealed + chunks * Self.added
    }
}
