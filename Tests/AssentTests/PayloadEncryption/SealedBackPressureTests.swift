import AssentCore
import AssentPayload
import Crypto
import HTTPTypes
import Testing

@testable import Assent

@Suite("Payload encryption: no more is read than somebody takes")
struct SealedBackPressureTests {
    private static let piece = 10_000

    /// A body in pieces, which counts how many of them were asked for.
    private static func pieces(of bytes: [UInt8], counting pulled: Locked<Int>) -> HTTPBody {
        HTTPBody(length: nil, isReplayable: false) {
            let left = Locked(bytes[...])
            return {
                left.withLock { left -> [UInt8]? in
                    guard !left.isEmpty else { return nil }
                    pulled.withLock { $0 += 1 }
                    defer { left = left.dropFirst(Self.piece) }
                    return Array(left.prefix(Self.piece))
                }
            }
        }
    }

    @Test("Of a sealed reply no more is asked for than its reader has read, but for one chunk")
    func reply() async throws {
        let (pulled, content) = (Locked(0), SystemRandom().bytes(400_000))
        let listener = SealedListener { _, path, reply in
            guard path.hasSuffix("/message") else { return reply }
            let bytes = try await reply.body.collect(upTo: 1 << 20)
            return HTTPReply(reply.response, body: Self.pieces(of: bytes, counting: pulled))
        }
        let call = try HTTPCall(.post, url: SealedListener.origin + "/transfers", body: HTTPBody(content))
        let reply = try await listener.transport().send(call)
        // The first chunk has 65,598 bytes, with the head of the message.
        #expect(pulled.withLock { $0 } == 7)
        var reading = reply.body.makeAsyncIterator()
        var read: [UInt8] = []
        while let next = try await reading.next() {
            read += next
            // A chunk ends within a piece, and is a little longer than what it seals.
            #expect(pulled.withLock { $0 } * Self.piece <= read.count + 3 * Self.piece)
        }
        #expect(read == content && pulled.withLock { $0 } > 40)
    }

    @Test("A content that a server sends in pieces of one byte is handed on in few")
    func tinyPieces() async throws {
        let (listener, content) = (SealedListener(), SystemRandom().bytes(100_000))
        listener.isInBytes.withLock { $0 = true }
        let call = try HTTPCall(.post, url: SealedListener.origin + "/transfers", body: HTTPBody(content))
        let reply = try await listener.transport().send(call)
        var reading = reply.body.makeAsyncIterator()
        var pieces: [[UInt8]] = []
        while let next = try await reading.next() { pieces.append(next) }
        #expect(pieces.count < 10 && Array(pieces.joined()) == content)
    }

    @Test("Of a request's content no more is asked for than is sent, but for one chunk", arguments: [true, false])
    func request(isLengthKnown: Bool) async throws {
        let (pulled, content) = (Locked(0), SystemRandom().bytes(400_000))
        let head = FrameHead(.request, session: SystemRandom().bytes(16), number: 1, random: SystemRandom())
        let upload = SealedUpload(
            Self.pieces(of: content, counting: pulled).reading(), length: isLengthKnown ? content.count : nil,
            FrameSealer(head, key: SymmetricKey(size: .bits256), bound: []), head: [1, 2, 3])
        #expect(pulled.withLock { $0 } == 0)
        var sent = 0
        while let next = try await upload.next() {
            sent += next.count
            #expect(pulled.withLock { $0 } * Self.piece <= sent + 2 * Self.piece)
        }
        #expect(sent > content.count && pulled.withLock { $0 } == content.count / Self.piece)
    }
}
