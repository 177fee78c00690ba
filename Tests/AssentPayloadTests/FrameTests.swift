import AssentCore
import Crypto
import TestSupport
import Testing

@testable import AssentPayload

@Suite("Payload encryption: frames")
struct FrameTests {
    private let secrets: PayloadSecrets
    private let head = PayloadVectors.head(.request, 7, salt: 0x01)

    init() throws { secrets = try PayloadVectors.client() }

    private func frame(_ count: Int) throws -> [UInt8] {
        try secrets.sealed(head, (0..<count).map { UInt8(truncatingIfNeeded: $0) })
    }

    @Test("A message's key is what HKDF-Expand makes of its direction's, however many were made before")
    func messageKeys() {
        let keys = MessageKeys(secrets.request)
        for count in [0, 1, 63, 64, 100, 64, 1] {
            let info = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            let expected = HKDF<SHA256>.expand(pseudoRandomKey: secrets.request, info: info, outputByteCount: 32)
            #expect(keys.key(info) == expected, "\(count) bytes")
        }
    }

    @Test("A message opens in whatever pieces it comes", arguments: [0, 1, 65_535, 65_536, 65_537, 131_072])
    func pieces(count: Int) throws {
        let frame = try frame(count)
        var random = SmallRandom(seed: count)
        var opener = FrameOpener(head, key: secrets.request, bound: [])
        var rest = frame.dropFirst(FrameHead.length)
        var plaintext: [UInt8] = []
        while !rest.isEmpty {
            let piece = rest.prefix(1 + random.below(40_000))
            plaintext += try opener.open(piece)
            rest = rest.dropFirst(piece.count)
        }
        try opener.finish()
        #expect(plaintext == (0..<count).map { UInt8(truncatingIfNeeded: $0) })
    }

    @Test("A message opens in the same way where it lies in no array", arguments: [0, 1, 16_368, 16_369, 131_073])
    func openedInPlace(count: Int) throws {
        let frame = Array(try frame(count).dropFirst(FrameHead.length))
        for size in [1_000, 65_557, 70_000, frame.count] {
            var opener = FrameOpener(head, key: secrets.request, bound: [])
            var plaintext: [UInt8] = []
            for start in stride(from: 0, to: frame.count, by: size) {
                let end = min(start + size, frame.count)
                plaintext += try frame.withUnsafeBytes { bytes in
                    try opener.open(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
                }
            }
            try opener.finish()
            #expect(plaintext == (0..<count).map { UInt8(truncatingIfNeeded: $0) }, "\(size)")
        }
        // A damaged chunk opens in neither way, short or long, and nothing behind it does.
        for index in [10, frame.count - 1] {
            var damaged = frame
            damaged[index] ^= 1
            var opener = FrameOpener(head, key: secrets.request, bound: [])
            #expect(throws: PayloadError.self, "\(index)") {
                try damaged.withUnsafeBytes { bytes in _ = try opener.open(bytes) }
            }
            var ofPieces = FrameOpener(head, key: secrets.request, bound: [])
            #expect(throws: PayloadError.self, "\(index), in pieces") {
                for start in stride(from: 0, to: damaged.count, by: 700) {
                    _ = try ofPieces.open(damaged[start..<min(start + 700, damaged.count)])
                }
            }
        }
    }

    @Test(
        "Behind a damaged chunk nothing opens, and the message does not end, whoever goes on with it",
        arguments: [1_000, 30_000, 65_557, 65_558])
    func behindDamage(size: Int) throws {
        let chunk = FrameCipher.chunkLength + FrameCipher.chunkHeadLength + FrameCipher.tagLength
        let sealed = Array(try frame(3 * FrameCipher.chunkLength + 7).dropFirst(FrameHead.length))
        for index in 0..<4 {
            var damaged = sealed
            damaged[index * chunk + FrameCipher.chunkHeadLength] ^= 1
            var opener = FrameOpener(head, key: secrets.request, bound: [])
            var plaintext: [UInt8] = []
            var faults: [PayloadError] = []
            for start in stride(from: 0, to: damaged.count, by: size) {
                do throws(PayloadError) {
                    plaintext += try opener.open(damaged[start..<min(start + size, damaged.count)])
                } catch {
                    faults.append(error)
                }
            }
            #expect(plaintext.count <= index * FrameCipher.chunkLength)
            #expect(!faults.isEmpty && faults.allSatisfy { $0 == .damagedFrame }, "chunk \(index)")
            #expect(throws: PayloadError.damagedFrame) { try opener.finish() }
        }
    }

    @Test("Thousands of chunks that hold nothing open in one piece: none of them is walked past for each one before it")
    func emptyChunks() throws {
        let count = 20_000
        var cipher = FrameCipher(MessageKeys(secrets.request), head, bound: [])
        var sealed: [UInt8] = []
        for _ in 1..<count { try cipher.seal([], isLast: false, into: &sealed) }
        try cipher.seal([7], isLast: true, into: &sealed)
        // At once, and behind a chunk that came in two parts.
        for first in [0, 3] {
            var opener = FrameOpener(head, key: secrets.request, bound: [])
            var plaintext = try opener.open(sealed[..<first])
            plaintext += try opener.open(sealed[first...])
            try opener.finish()
            #expect(plaintext == [7])
        }
    }

    @Test("The pieces that are sealed make no difference to the message", arguments: [1, 65_535, 65_536, 65_537])
    func sealedInPieces(size: Int) throws {
        let count = 2 * 65_536
        let whole = try frame(count)
        let plaintext = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        var sealer = FrameSealer(head, key: secrets.request, bound: [])
        var sealed: [UInt8] = []
        for start in stride(from: 0, to: count, by: size) {
            sealed += try sealer.seal(plaintext[start..<min(start + size, count)])
        }
        sealed += try sealer.finish()
        #expect(sealed == whole)
    }

    @Test(
        "Sealed from where it lies a message is the same, each part as long as was said, and no full chunk waits",
        arguments: [700, 65_535, 65_536, 65_537, 131_072, 200_000])
    func sealedInPlace(size: Int) throws {
        let plaintext = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
        for isFlushed in [false, true] {
            var ofArrays = FrameSealer(head, key: secrets.request, bound: [])
            var inPlace = FrameSealer(head, key: secrets.request, bound: [])
            var (expected, sealed): ([UInt8], [UInt8]) = ([], [])
            for start in stride(from: 0, to: plaintext.count, by: size) {
                let end = min(start + size, plaintext.count)
                expected += try ofArrays.seal(plaintext[start..<end])
                if isFlushed { expected += try ofArrays.flush() }
                let length = sealed.count + inPlace.sealedLength(adding: end - start, isFlushed: isFlushed)
                try plaintext.withUnsafeBytes { bytes in
                    try inPlace.seal(UnsafeRawBufferPointer(rebasing: bytes[start..<end])) { sealed += $0 }
                }
                if isFlushed { try inPlace.flush { sealed += $0 } }
                #expect(sealed.count == length, "\(start), flushed: \(isFlushed)")
                // Of pieces as long as a chunk nothing is kept, and so nothing copied.
                #expect(inPlace.rest.count == (isFlushed ? 0 : end % 65_536), "\(start), flushed: \(isFlushed)")
            }
            expected += try ofArrays.finish()
            sealed += try inPlace.finish()
            #expect(sealed == expected, "flushed: \(isFlushed)")
        }
    }

    @Test("The last of a message may come with its end", arguments: [0, 1, 65_535, 65_536, 65_537, 140_000])
    func finishedWithAPiece(count: Int) throws {
        let plaintext = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        for first in [0, min(count, 100), count] {
            var sealer = FrameSealer(head, key: secrets.request, bound: [])
            var sealed = try sealer.seal(plaintext.prefix(first))
            sealed += try sealer.finish(with: Array(plaintext.dropFirst(first)))
            #expect(try sealed == frame(count), "\(first)")
        }
    }

    @Test("What is flushed is not sealed twice, and a message may end without bytes behind it")
    func flushed() throws {
        var sealer = FrameSealer(head, key: secrets.request, bound: [])
        var sealed = try sealer.seal([1, 2, 3])
        #expect(sealed.isEmpty)
        sealed += try sealer.flush()
        #expect(try sealer.flush().isEmpty)
        sealed += try sealer.seal([UInt8](repeating: 4, count: 65_537))
        sealed += try sealer.flush()
        sealed += try sealer.finish()
        #expect(try secrets.opened(sealed, as: .request) == [1, 2, 3] + [UInt8](repeating: 4, count: 65_537))
    }

    @Test(
        "A stream that waits for its next piece keeps no bytes and no large place", arguments: [100, 65_536, 100_000])
    func waiting(size: Int) throws {
        var sealer = FrameSealer(head, key: secrets.request, bound: [])
        let piece = [UInt8](repeating: 4, count: size)
        var sealed: [UInt8] = []
        try piece.withUnsafeBytes { bytes in try sealer.seal(bytes) { sealed += $0 } }
        try sealer.flush { sealed += $0 }
        #expect(sealer.rest.isEmpty && sealer.rest.capacity <= 4096)
        sealed += try sealer.finish()
        #expect(try secrets.opened(sealed, as: .request) == piece)
    }

    @Test("36: Each byte of a message counts: with any of them changed it does not open")
    func flipped() throws {
        let frame = try frame(40)
        for index in frame.indices {
            for bit in [0, 3, 7] {
                var changed = frame
                changed[index] ^= 1 << bit
                #expect(throws: PayloadError.self, "byte \(index)") { try secrets.opened(changed, as: .request) }
            }
        }
    }

    @Test("A message that is cut off anywhere does not end, and none has bytes behind its end")
    func cut() throws {
        let frame = try frame(40)
        for length in frame.indices {
            #expect(throws: PayloadError.truncated) { try secrets.opened(Array(frame.prefix(length)), as: .request) }
        }
        for extra in [[0], [1], [UInt8](repeating: 0, count: 100)] as [[UInt8]] {
            #expect(throws: PayloadError.malformedFrame) { try secrets.opened(frame + extra, as: .request) }
        }
    }

    @Test("Chunks that are left out, repeated, swapped, or taken from another message do not open")
    func order() throws {
        let frame = try frame(3 * 65_536 + 5)
        let size = 65_536 + 16 + 5
        let top = Array(frame.prefix(FrameHead.length))
        let chunks = (0..<4).map { index in
            Array(frame.dropFirst(FrameHead.length + index * size).prefix(size))
        }
        let other = try secrets.sealed(
            PayloadVectors.head(.request, 8, salt: 0x01), [UInt8](repeating: 1, count: 3 * 65_536))
        let foreign = Array(other.dropFirst(FrameHead.length).prefix(size))
        let last = chunks[3]
        for order in [
            [chunks[0], chunks[2], last], [chunks[0], chunks[0], chunks[1], chunks[2], last],
            [chunks[1], chunks[0], chunks[2], last], [chunks[0], foreign, chunks[2], last], [last], [chunks[0], last],
        ] {
            #expect(throws: PayloadError.damagedFrame) {
                try secrets.opened(top + order.flatMap(\.self), as: .request)
            }
        }
        #expect(throws: PayloadError.truncated) {
            try secrets.opened(top + chunks[0] + chunks[1] + chunks[2], as: .request)
        }
    }

    @Test("The last chunk is there once, says so, and is the only one that does")
    func last() throws {
        let frame = try frame(65_536 + 5)
        let size = 65_536 + 16 + 5
        let (top, first, last) = (
            Array(frame.prefix(FrameHead.length)), Array(frame.dropFirst(FrameHead.length).prefix(size)),
            Array(frame.dropFirst(FrameHead.length + size))
        )
        #expect(try secrets.opened(top + first + last, as: .request).count == 65_536 + 5)
        for behind in [last, first, Array(last.prefix(1)), [1, 0, 0, 0, 16]] as [[UInt8]] {
            #expect(throws: PayloadError.malformedFrame) { try secrets.opened(frame + behind, as: .request) }
        }
        // With the byte that says whether it is the last one changed.
        let early: [UInt8] = [1] + first.dropFirst()
        let late: [UInt8] = [0] + last.dropFirst()
        for message in [top + early, top + early + last, top + first + late, top + first + late + last] {
            #expect(throws: PayloadError.damagedFrame) { try secrets.opened(message, as: .request) }
        }
    }

    @Test("Lengths that are not possible are refused before anything is kept", arguments: [0, 15, 65_553, 1 << 31])
    func lengths(length: UInt32) throws {
        let top = Array(try frame(1).prefix(FrameHead.length))
        let chunk = [1] + withUnsafeBytes(of: length.bigEndian) { Array($0) }
        #expect(throws: PayloadError.malformedFrame) { try secrets.opened(top + chunk, as: .request) }
    }

    @Test("A request is not a reply, and a reply answers one request of one session alone")
    func binding() throws {
        let reply = PayloadVectors.head(.reply, 7, salt: 0x02)
        let frame = try secrets.sealed(reply, [1, 2, 3], bound: head.binding)
        #expect(try secrets.opened(frame, as: .reply, bound: head.binding) == [1, 2, 3])
        // The same request, sent again, has another salt.
        for bound in [[], PayloadVectors.head(.request, 7, salt: 0x03).binding, reply.binding] {
            #expect(throws: PayloadError.damagedFrame) { try secrets.opened(frame, as: .reply, bound: bound) }
        }
        #expect(throws: PayloadError.foreignFrame) { try secrets.opened(frame, as: .request) }
        var reflected = try self.frame(3)
        reflected[0] = 2
        #expect(throws: PayloadError.damagedFrame) { try secrets.opened(reflected, as: .reply) }
        let other = try PayloadSecrets(
            peer: PayloadVectors.peer, ephemeral: PayloadVectors.key(0x23),
            serverKey: PayloadKey(of: PayloadVectors.key(0x11)),
            serverEphemeral: PayloadKey(of: PayloadVectors.key(0x33)), session: PayloadVectors.session)
        #expect(throws: PayloadError.damagedFrame) { try other.opened(self.frame(3), as: .request) }
    }

    @Test("Bytes that are no head are refused: too few, an unknown kind, the number 0")
    func heads() throws {
        let bytes = head.bytes
        #expect(try FrameHead(bytes[...]) == head)
        #expect(throws: PayloadError.truncated) { try FrameHead(bytes.prefix(40)) }
        for kind: UInt8 in [0, 3, 255] {
            var other = bytes
            other[0] = kind
            #expect(throws: PayloadError.foreignFrame) { try FrameHead(other[...]) }
        }
        let zero = bytes.prefix(17) + [UInt8](repeating: 0, count: 8) + bytes.suffix(16)
        #expect(throws: PayloadError.foreignFrame) { try FrameHead(Array(zero)[...]) }
    }

    @Test("Every field of the keys' transcript counts, and a key of small order agrees on nothing")
    func transcript() throws {
        let peer = PayloadVectors.peer
        func secrets(_ peer: PayloadPeer, _ session: UInt8 = 0x44) throws -> [UInt8] {
            try PayloadSecrets(
                peer: peer, ephemeral: PayloadVectors.key(0x22), serverKey: PayloadKey(of: PayloadVectors.key(0x11)),
                serverEphemeral: PayloadKey(of: PayloadVectors.key(0x33)),
                session: [UInt8](repeating: session, count: 16)
            ).confirmation
        }
        let changed = [
            PayloadPeer(
                role: .app, origin: peer.origin, client: peer.client, app: peer.app, version: peer.version,
                platform: peer.platform),
            PayloadPeer(
                role: .device, origin: "https://api.bank.example:444", client: peer.client, app: peer.app,
                version: peer.version, platform: peer.platform),
            PayloadPeer(
                role: .device, origin: peer.origin, client: nil, app: peer.app, version: peer.version,
                platform: peer.platform),
            // The same characters, divided in another way.
            PayloadPeer(
                role: .device, origin: peer.origin, client: "i-1b", app: "ank", version: peer.version,
                platform: peer.platform),
            PayloadPeer(
                role: .device, origin: peer.origin, client: peer.client, app: peer.app, version: "3.2.1",
                platform: peer.platform),
            PayloadPeer(
                role: .device, origin: peer.origin, client: peer.client, app: peer.app, version: peer.version,
                platform: "macos"),
        ]
        let all = try changed.map { try secrets($0) } + [secrets(peer), secrets(peer, 0x45)]
        #expect(Set(all).count == all.count)
        for bytes in [[UInt8](repeating: 0, count: 32), [1] + [UInt8](repeating: 0, count: 31)] {
            let weak = try PayloadKey(bytes)
            #expect(throws: PayloadError.badKey) { try weak.agree(with: PayloadVectors.key(0x22)) }
        }
        for count in [0, 31, 33] {
            #expect(throws: PayloadError.badKey) { try PayloadKey([UInt8](repeating: 9, count: count)) }
        }
    }

    @Test("A number is taken once, in any order, while it is among the newest 1,024")
    func window() {
        let numbers: [UInt64] = [0, 5, 5, 3, 1_028, 1_028, 4, 6, 5, .max, .max, .max - 1024, .max - 1023]
        var window = NumberWindow()
        #expect(
            numbers.map { window.claim($0) }
                == [false, true, false, true, true, false, false, true, false, true, false, false, true])
        var random = SmallRandom(seed: 1)
        var walked = NumberWindow()
        var seen: Set<UInt64> = []
        var newest: UInt64 = 0
        for _ in 0..<20_000 {
            let number = newest + UInt64(random.below(40)) + 1 - min(newest, UInt64(random.below(1_200)))
            let isKnown = number + 1_024 <= newest || seen.contains(number)
            let isTaken = walked.claim(number)
            #expect(isTaken == !isKnown)
            seen.insert(number)
            newest = max(newest, number)
        }
    }

    @Test(
        "A jump over the whole window makes all numbers behind it new: none counts as one that had its place",
        arguments: [1_024, 1_025, 1_500, 2_047, 2_048, 5_000, 1 << 40] as [UInt64])
    func jump(length: UInt64) {
        var window = NumberWindow()
        let before = (1...1_024 as ClosedRange<UInt64>).filter { window.claim($0) }
        #expect(before.count == 1_024)
        let newest = 1_024 + length
        #expect([newest, newest].map { window.claim($0) } == [true, false])
        for count in [1_023, 0] {
            let passed = (newest - 1_023..<newest).filter { window.claim($0) }
            #expect(passed.count == count)
        }
        #expect([newest - 1_024, 1_024].map { window.claim($0) } == [false, false])
    }
}
