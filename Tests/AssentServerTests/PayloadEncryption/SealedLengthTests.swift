import AssentCore
import AssentPayload
import HTTPTypes
import Hummingbird
import NIOCore
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Payload encryption: what the lengths of chunks tell of a long reply")
struct SealedLengthTests {
    /// Keeps what is sent.
    private struct Collector: ResponseBodyWriter {
        let bytes: Locked<[UInt8]>

        mutating func write(_ buffer: ByteBuffer) async throws { bytes.withLock { $0 += Array(buffer: buffer) } }

        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    /// What is sent of a reply.
    private static func sent(_ response: Response) async throws -> [UInt8] {
        let bytes = Locked<[UInt8]>([])
        try await response.body.write(Collector(bytes: bytes))
        return bytes.withLock { $0 }
    }

    /// How many bytes of plaintext each chunk of a message has.
    private static func lengths(of frame: [UInt8]) -> [Int] {
        var rest = frame.dropFirst(FrameHead.length)
        var found: [Int] = []
        while rest.count > 5 {
            let length = rest.dropFirst().prefix(4).reduce(0) { $0 << 8 | Int($1) }
            found.append(length - 16)
            rest = rest.dropFirst(5 + length)
        }
        return found
    }

    @Test(
        "No chunk tells where a content of known length ends, whether it comes at once or in pieces",
        arguments: [[[70_000], [71_000]], [[1_000, 199_000], [1_000, 199_500]]])
    func known(contents: [[Int]]) async throws {
        try await ServerFixture.run { node in
            let origin = try Origin("https://api.bank.example")
            let (sessions, secrets) = try await SealedContentTests.session(at: node, for: origin)
            var found: [[Int]] = []
            for (index, pieces) in contents.enumerated() {
                let request = FrameHead(
                    .request, session: secrets.session, number: UInt64(index + 1), random: SystemRandom())
                let reply = SealedReply(try sessions.claim(request), RunningMessage(request, in: sessions))
                let body = ResponseBody(contentLength: pieces.reduce(0, +)) { writer in
                    for piece in pieces { try await writer.write(ByteBuffer(repeating: 7, count: piece)) }
                    try await writer.finish(nil)
                }
                let sealed = try await reply.sealing(Response(status: .ok, body: body), toHead: false)
                let frame = try await Self.sent(sealed)
                let head = try FrameHead(frame.prefix(FrameHead.length))
                var opener = FrameOpener(head, key: secrets.reply, bound: request.binding)
                let plaintext = try opener.open(frame.dropFirst(FrameHead.length))
                #expect(opener.hasEnded && plaintext.count == Padding.length(of: plaintext.count))
                found.append(Self.lengths(of: frame))
            }
            // Both are padded to one length.
            #expect(found[0] == found[1])
        }
    }

    @Test("What a service sends is sealed as it comes, and has no end where it is not as long as was said")
    func ofService() async throws {
        try await ServerFixture.run { node in
            let origin = try Origin("https://api.bank.example")
            let (sessions, secrets) = try await SealedContentTests.session(at: node, for: origin)
            let pieces = [70_000, 1, 130_000].map { [UInt8](repeating: UInt8(truncatingIfNeeded: $0), count: $0) }
            for (number, length) in [200_001, 200_000, 200_002].enumerated() {
                let request = FrameHead(
                    .request, session: secrets.session, number: UInt64(number + 1), random: SystemRandom())
                let reply = SealedReply(try sessions.claim(request), RunningMessage(request, in: sessions))
                let body = HTTPBody(length: length, isReplayable: false) {
                    let left = Locked(pieces[...])
                    return { left.withLock { left -> [UInt8]? in left.popFirst() } }
                }
                let sealed = try await reply.sealing(
                    Response(status: .ok, body: ResponseBody(body)), toHead: false)
                guard length == 200_001 else {
                    await #expect(throws: (any Error).self, "\(length)") { _ = try await Self.sent(sealed) }
                    continue
                }
                let frame = try await Self.sent(sealed)
                let head = try FrameHead(frame.prefix(FrameHead.length))
                var opener = FrameOpener(head, key: secrets.reply, bound: request.binding)
                var reader = BinaryHTTPReader(.reply)
                var content: [UInt8] = []
                for part in try reader.read(try opener.open(frame.dropFirst(FrameHead.length))) {
                    if case .content(let bytes) = part { content += bytes }
                }
                #expect(opener.hasEnded)
                #expect(content == Array(pieces.joined()))
            }
        }
    }
}
