import AssentCore
import AssentPayload
import HTTPTypes
import Hummingbird
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Payload encryption: a long reply, and a client that takes it slowly")
struct SealedReplyPaceTests {
    private static let piece = 10_000

    /// Takes what is sent, and keeps by how much what the service was asked for is ahead of it.
    private struct Taker: ResponseBodyWriter {
        let sent: Locked<Int>
        let asked: Locked<Int>
        let ahead: Locked<Int>

        mutating func write(_ buffer: ByteBuffer) async throws {
            // Whoever reads on beside this has the time for it.
            for _ in 0..<100 { await Task.yield() }
            let surplus = asked.withLock { $0 } - sent.withLock { $0 }
            ahead.withLock { $0 = max($0, surplus) }
            sent.withLock { $0 += buffer.readableBytes }
        }

        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    @Test(
        "36: The service is asked for no more than a chunk and a piece beyond what was sent", arguments: [true, false])
    func sealing(isLengthKnown: Bool) async throws {
        try await ServerFixture.run { node in
            let origin = try Origin("https://api.bank.example")
            let (sessions, secrets) = try await SealedContentTests.session(at: node, for: origin)
            let count = 200
            let taker = Taker(sent: Locked(0), asked: Locked(0), ahead: Locked(0))
            let body = HTTPBody(length: isLengthKnown ? count * Self.piece : nil, isReplayable: false) {
                let left = Locked(count)
                return {
                    left.withLock { left -> [UInt8]? in
                        guard left > 0 else { return nil }
                        left -= 1
                        taker.asked.withLock { $0 += Self.piece }
                        return [UInt8](repeating: 7, count: Self.piece)
                    }
                }
            }
            let request = FrameHead(.request, session: secrets.session, number: 1, random: SystemRandom())
            let reply = SealedReply(try sessions.claim(request), RunningMessage(request, in: sessions))
            let sealed = try await reply.sealing(Response(status: .ok, body: ResponseBody(body)), toHead: false)
            #expect(taker.asked.withLock { $0 } == 0)
            try await sealed.body.write(taker)
            #expect(taker.asked.withLock { $0 } == count * Self.piece)
            #expect(taker.sent.withLock { $0 } > count * Self.piece)
            let ahead = taker.ahead.withLock { $0 }
            #expect(ahead > 0 && ahead <= 65_536 + 2 * Self.piece, "\(ahead)")
        }
    }

    /// Takes what is sent, and lets go of it or, as a network that is behind, keeps it.
    private struct Network: ResponseBodyWriter {
        let isBehind: Bool
        let sent = Locked<[ByteBuffer]>([])
        let places = Locked<[UInt]>([])

        mutating func write(_ buffer: ByteBuffer) async throws {
            let place = buffer.withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) }
            places.withLock { $0.append(place) }
            let kept = isBehind ? buffer : ByteBuffer(bytes: Array(buffer: buffer))
            sent.withLock { $0.append(kept) }
        }

        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    @Test(
        "36: A full chunk is sent in one piece, whose place is used again when the network has let go of it",
        arguments: [false, true])
    func places(isBehind: Bool) async throws {
        try await ServerFixture.run { node in
            let origin = try Origin("https://api.bank.example")
            let (sessions, secrets) = try await SealedContentTests.session(at: node, for: origin)
            let count = 20
            let body = HTTPBody(length: count * 65_536, isReplayable: false) {
                let left = Locked(count)
                return {
                    left.withLock { left -> [UInt8]? in
                        guard left > 0 else { return nil }
                        left -= 1
                        return [UInt8](repeating: UInt8(left), count: 65_536)
                    }
                }
            }
            let request = FrameHead(.request, session: secrets.session, number: 1, random: SystemRandom())
            let reply = SealedReply(try sessions.claim(request), RunningMessage(request, in: sessions))
            let sealed = try await reply.sealing(Response(status: .ok, body: ResponseBody(body)), toHead: false)
            let network = Network(isBehind: isBehind)
            try await sealed.body.write(network)
            let sent = network.sent.withLock { $0 }
            // The head is in the first, and the padding in the last.
            #expect(sent.count == count + 1)
            #expect(sent.dropFirst().dropLast().allSatisfy { $0.readableBytes == 5 + 65_536 + 16 })
            let places = Set(network.places.withLock { $0 }.dropFirst().dropLast())
            #expect(places.count == (isBehind ? count - 1 : 1))
            let frame = sent.flatMap { Array(buffer: $0) }
            let head = try FrameHead(frame.prefix(FrameHead.length))
            var opener = FrameOpener(head, key: secrets.reply, bound: request.binding)
            let plaintext = try opener.open(frame.dropFirst(FrameHead.length))
            try opener.finish()
            var reader = BinaryHTTPReader(.reply)
            var content: [UInt8] = []
            for part in try reader.read(plaintext) {
                if case .content(let bytes) = part { content += bytes }
            }
            let expected = (0..<count).reversed().flatMap { [UInt8](repeating: UInt8($0), count: 65_536) }
            #expect(content == expected)
        }
    }

    @Test("36: While a client takes nothing the service is read no further than sockets hold, and goes on with it")
    func unread() async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            let total = 128 << 20
            let sent = Watched(0)
            fixture.upstream.answer { _, peer in
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
                let piece = ByteBuffer(repeating: 7, count: 64 << 10)
                @Sendable func next() {
                    guard sent.value < total else { return }
                    peer.channel.writeAndFlush(piece).whenSuccess {
                        sent.update { $0 += 64 << 10 }
                        next()
                    }
                }
                next()
            }
            let sealed = try client.sealed(client.request(.get, "/open"), number: 1)
            let connection = try await fixture.rawConnection()
            try await connection.send(
                "POST /assent-pe/1/message HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    + "Content-Type: application/assent-pe\r\nContent-Length: \(sealed.bytes.count)\r\n\r\n")
            // TLS has shaken hands by now.
            try await connection.take(false)
            try await connection.send(sealed.bytes)
            await sent.wait { $0 > 0 }
            // Each round lets all event loops pass once, so that whatever can move does.
            var (last, still) = (0, 0)
            while still < 500, last < total {
                for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() { try await loop.submit {}.get() }
                await Task.yield()
                let now = sent.value
                still = now == last ? still + 1 : 0
                last = now
            }
            #expect(last < total)
            // The control: it was the client that held it up.
            let stood = last
            try await connection.take(true)
            await sent.wait { $0 > stood }
            #expect(sent.value > stood)
            await connection.wait(forBytes: 1 << 20)
            #expect(connection.bytes.count >= 1 << 20)
            await connection.close()
        }
    }
}
