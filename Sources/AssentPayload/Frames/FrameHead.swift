package import AssentCore
import Crypto
import Foundation

/// The first 41 bytes of a sealed message (docs/payload-encryption.md, "Frames").
package struct FrameHead: Hashable, Sendable {
    package enum Kind: UInt8, Hashable, Sendable {
        case request = 1
        case reply = 2
    }

    package static let length = 41
    private static let saltLength = 16

    package let kind: Kind
    package let session: [UInt8]
    /// Counts the requests of a session, from 1; a reply has that of its request.
    package let number: UInt64
    /// All of it, as it is sent. The last 16 bytes are random: they give each message a key of its own.
    package let bytes: [UInt8]

    package init(_ kind: Kind, session: [UInt8], number: UInt64, random: some RandomSource) {
        (self.kind, self.session, self.number) = (kind, session, number)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.length)
        bytes.append(kind.rawValue)
        bytes += session
        // Not by a function of another module, which is generic code there: a sealed call writes a dozen numbers.
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
        bytes += random.bytes(Self.saltLength)
        self.bytes = bytes
    }

    /// - Throws: ``PayloadError/foreignFrame`` for bytes that are not a frame's head, `truncated` for too few of them.
    package init(_ bytes: ArraySlice<UInt8>) throws(PayloadError) {
        // Not of any collection: other modules would call generic code, which takes longer.
        let all = Array(bytes.prefix(Self.length))
        guard all.count == Self.length, let first = all.first else { throw .truncated }
        guard let kind = Kind(rawValue: first) else { throw .foreignFrame }
        let rest = all.dropFirst().dropFirst(PayloadSecrets.sessionLength)
        var number: UInt64 = 0
        for byte in rest.prefix(8) { number = number << 8 | UInt64(byte) }
        guard number > 0 else { throw .foreignFrame }
        (self.kind, self.number, self.bytes) = (kind, number, all)
        session = Array(all.dropFirst().prefix(PayloadSecrets.sessionLength))
    }

    /// What binds a reply to this request.
    package var binding: [UInt8] {
        // Not by a function of another module that takes any collection, as above.
        SHA256.hash(data: bytes).withUnsafeBytes { Array($0) }
    }
}

/// What seals and opens the chunks of one message.
struct FrameCipher: Sendable {
    /// The bytes of a chunk's plaintext, but for the last.
    static let chunkLength = 65_536
    static let tagLength = 16
    static let chunkHeadLength = 5
    private static let nonceLength = 12
    /// The zero bytes that a nonce begins with. What follows is as long as a chunk's head.
    static let nonceZeros = nonceLength - chunkHeadLength

    private let key: SymmetricKey
    private let associated: [UInt8]
    private var index: UInt32 = 0
    private(set) var hasEnded = false

    init(_ keys: MessageKeys, _ head: FrameHead, bound: [UInt8]) {
        key = keys.key(Self.frame("assent pe1 message", head, bound).bytes)
        associated = Self.frame("assent pe1 frame", head, bound).bytes
    }

    /// Field by field, without a list of them: each sealed call makes eight frames.
    private static func frame(_ label: String, _ head: FrameHead, _ bound: [UInt8]) -> Frame {
        var frame = Frame(label)
        frame.append(.bytes(head.bytes))
        frame.append(.bytes(bound))
        return frame
    }

    /// Appends a chunk to `sealed`.
    mutating func seal(
        _ plaintext: ArraySlice<UInt8>, isLast: Bool, into sealed: inout [UInt8]
    ) throws(PayloadError) {
        let combined = try combined(plaintext, isLast: isLast)
        sealed += Self.chunkHead(of: combined, isLast: isLast)
        combined.withUnsafeBytes { sealed.append(contentsOf: Self.withoutNonce($0)) }
    }

    /// Hands a chunk that is not the last to `write`, in two pieces.
    mutating func seal(
        _ plaintext: UnsafeRawBufferPointer, _ write: (UnsafeRawBufferPointer) -> Void
    ) throws(PayloadError) {
        let combined = try combined(plaintext, isLast: false)
        Self.chunkHead(of: combined, isLast: false).withUnsafeBytes { write($0) }
        combined.withUnsafeBytes { write(Self.withoutNonce($0)) }
    }

    /// Nonce, ciphertext and tag of a chunk, as they lie in its box.
    private mutating func combined(_ plaintext: some DataProtocol, isLast: Bool) throws(PayloadError) -> Data {
        let nonce = try nextNonce(isLast: isLast)
        do {
            let box = try AES.GCM.seal(
                plaintext, using: key, nonce: AES.GCM.Nonce(data: nonce), authenticating: associated)
            // It is there where a nonce has the usual length.
            guard let combined = box.combined else { throw PayloadError.malformedFrame }
            return combined
        } catch {
            throw .malformedFrame
        }
    }

    private static func chunkHead(of combined: Data, isLast: Bool) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(chunkHeadLength)
        head.append(isLast ? 1 : 0)
        let length = UInt32(truncatingIfNeeded: combined.count - nonceLength)
        withUnsafeBytes(of: length.bigEndian) { head.append(contentsOf: $0) }
        return head
    }

    private static func withoutNonce(_ combined: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: combined.dropFirst(nonceLength))
    }

    /// Appends to `plaintext` what a chunk holds; `sealed` is ciphertext and tag.
    mutating func open(
        _ sealed: UnsafeRawBufferPointer, isLast: Bool, into plaintext: inout [UInt8]
    ) throws(PayloadError) {
        let nonce = try nextNonce(isLast: isLast)
        do {
            try open(Self.box(nonce, sealed), into: &plaintext)
        } catch {
            throw .damagedFrame
        }
    }

    /// The same for a chunk with its head that lies behind ``nonceZeros``. The nonce is written over both, so that it
    /// stands before the ciphertext, and the box is made of one piece.
    mutating func open(behindZeros chunk: inout [UInt8], into plaintext: inout [UInt8]) throws(PayloadError) {
        guard chunk.count >= Self.nonceLength + Self.tagLength else { throw .malformedFrame }
        let nonce = try nextNonce(isLast: chunk.dropFirst(Self.nonceZeros).first == 1)
        chunk.replaceSubrange(..<Self.nonceLength, with: nonce)
        do {
            let box = try chunk.withUnsafeBytes { bytes in try AES.GCM.SealedBox(combined: bytes) }
            try open(box, into: &plaintext)
        } catch {
            throw .damagedFrame
        }
    }

    private func open(_ box: AES.GCM.SealedBox, into plaintext: inout [UInt8]) throws {
        let opened = try AES.GCM.open(box, using: key, authenticating: associated)
        opened.withUnsafeBytes { plaintext.append(contentsOf: $0) }
    }

    /// Up to this length a box is made in one piece.
    private static let onePiece = 16_384

    private static func box(_ nonce: [UInt8], _ sealed: UnsafeRawBufferPointer) throws -> AES.GCM.SealedBox {
        // To make a box from its parts is generic code, and takes longer than to open a short chunk. But one that is
        // made in one piece copies that piece once more, which takes longer for a full chunk.
        guard sealed.count <= onePiece else {
            return try AES.GCM.SealedBox(
                nonce: AES.GCM.Nonce(data: nonce),
                ciphertext: UnsafeRawBufferPointer(rebasing: sealed.dropLast(tagLength)),
                tag: UnsafeRawBufferPointer(rebasing: sealed.suffix(tagLength)))
        }
        return try withUnsafeTemporaryAllocation(byteCount: nonce.count + sealed.count, alignment: 1) { place in
            place.copyBytes(from: nonce)
            UnsafeMutableRawBufferPointer(rebasing: place.dropFirst(nonce.count)).copyMemory(from: sealed)
            return try AES.GCM.SealedBox(combined: UnsafeRawBufferPointer(place))
        }
    }

    private mutating func nextNonce(isLast: Bool) throws(PayloadError) -> [UInt8] {
        guard !hasEnded else { throw .malformedFrame }
        guard index < .max else { throw .tooLong }
        var nonce: [UInt8] = []
        nonce.reserveCapacity(Self.nonceLength)
        nonce += repeatElement(0, count: Self.nonceZeros)
        withUnsafeBytes(of: index.bigEndian) { nonce.append(contentsOf: $0) }
        nonce.append(isLast ? 1 : 0)
        index += 1
        hasEnded = isLast
        return nonce
    }
}
