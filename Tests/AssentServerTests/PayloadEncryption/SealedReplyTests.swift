import AssentCore
import AssentPayload
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Payload encryption: replies that the service breaks off")
struct SealedReplyTests {
    /// What a reply in chunks (RFC 9112 §7.1) has for content, and whether it has its end.
    private static func chunked(_ reply: [UInt8]) -> (content: [UInt8], isWhole: Bool) {
        var rest = Data(reply)
        guard let head = rest.range(of: Data("\r\n\r\n".utf8)) else { return ([], false) }
        rest = rest[head.upperBound...]
        var content: [UInt8] = []
        while let end = rest.range(of: Data("\r\n".utf8)),
            let size = Int(String(decoding: rest[..<end.lowerBound], as: UTF8.self), radix: 16)
        {
            if size == 0 { return (content, true) }
            let chunk = rest[end.upperBound...]
            content += chunk.prefix(size)
            rest = chunk.dropFirst(size + 2)
        }
        return (content, false)
    }

    @Test(
        "36: It has no last chunk and no end, so that nobody takes what came for the whole",
        arguments: [
            ("Content-Length: 200000\r\n\r\n", false), ("Content-Length: 300000\r\n\r\n", true),
            ("Transfer-Encoding: chunked\r\n\r\n30D40\r\n", true),
        ])
    func broken(fields: String, isCut: Bool) async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            let peers = Watched<[TestUpstream.Peer]>([])
            fixture.upstream.answer { _, peer in
                peers.update { $0.append(peer) }
                peer.send("HTTP/1.1 200 OK\r\n" + fields + String(repeating: "r", count: 200_000))
            }
            let sealed = try client.sealed(client.request(.get, "/open"), number: 1)
            let connection = try await fixture.rawConnection()
            try await connection.send(
                "POST /assent-pe/1/message HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    + "Content-Type: application/assent-pe\r\nContent-Length: \(sealed.bytes.count)\r\n\r\n")
            try await connection.send(sealed.bytes)
            // The first chunk is there.
            await connection.wait(forBytes: 70_000)
            if isCut { try #require(peers.value.first).close() }
            _ = await connection.untilClosed()
            let (frame, isWhole) = Self.chunked(connection.bytes)
            #expect(isWhole == !isCut)
            let head = try FrameHead(frame.prefix(FrameHead.length))
            var opener = FrameOpener(head, key: client.session.secrets.reply, bound: sealed.head.binding)
            let opened = try opener.open(frame.dropFirst(FrameHead.length))
            #expect(opened.count >= 65_536)
            #expect(opener.hasEnded == !isCut)
        }
    }

    @Test("36: A short one, which is sealed in one piece, is not sealed at all")
    func short() async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            fixture.upstream.answer { _, peer in
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
                peer.close()
            }
            let sealed = try client.sealed(client.request(.get, "/open"), number: 1)
            // Where the gateway has begun to answer, its own connection ends. Where the service's ends before the
            // gateway has read the head, the gateway says so itself.
            if let answer = try? await client.send(sealed.bytes) {
                if answer.status == 200 {
                    #expect(try client.open(answer, to: sealed.head).status >= 500)
                } else {
                    #expect(answer.refusal == .busy, "\(answer.text)")
                }
            }
            // The control: a whole reply arrives.
            fixture.upstream.answer(with: TestUpstream.answering)
            let next = try client.sealed(client.request(.get, "/open"), number: 2)
            #expect(try client.open(try await client.send(next.bytes), to: next.head).status == 200)
        }
    }
}
