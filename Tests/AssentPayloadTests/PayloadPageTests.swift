import AssentCore
import AssentPayload
import Crypto
import Foundation
import HTTPTypes
import Testing

@Suite("Payload encryption: the page and both sides together")
struct PayloadPageTests {
    @Test("The page's tables have a line for each answer and each refusal, with the status that is sent")
    func tables() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/payload-encryption.md"), encoding: .utf8)
        let lines = page.split(separator: "\n")
        for answer in ClientSession.Answer.allCases {
            #expect(lines.contains { $0.hasPrefix("| \(answer.rawValue) |") }, "\(answer)")
        }
        for refusal in PayloadRefusal.allCases {
            #expect(lines.contains { $0.hasPrefix("| `\(refusal.rawValue)` | \(refusal.status) |") }, "\(refusal)")
        }
    }

    @Test("A call goes through a handshake, a session and a message of both sides, and comes back")
    func roundTrip() throws {
        let now = Date(timeIntervalSince1970: 1_900_000_000)
        let key = Curve25519.KeyAgreement.PrivateKey()
        let origin = try Origin("https://api.bank.example")
        let names = SessionName(key: SymmetricKey(size: .bits256))
        let peer = PayloadVectors.peer

        var session = ClientSession(role: .device, keys: [.init(PayloadKey(of: key), notAfter: .distantFuture)])
        guard
            case .handshake(let attempt, let serverKey)? =
                session.take(.begin(.init(id: 1, mayRepeat: false)), at: now).first
        else {
            Issue.record("There is no handshake.")
            return
        }
        let handshake = try ClientHandshake(peer, serverKey: serverKey, random: SystemRandom())
        let (reply, secrets) = try ServerHandshake(
            HandshakeRequest(body: handshake.request.body), keys: [ServerPayloadKey(key, notAfter: .distantFuture)],
            now: now
        ).finish(
            prover: peer.client, origin: origin.description, session: names.make(random: SystemRandom()),
            random: SystemRandom())
        var node = ServerSession(secrets, peer: peer, begun: now, lastUse: now)

        let (agreed, expires) = try handshake.finish(reply.body)
        guard
            case .send(1, let message)? =
                session.take(.handshake(attempt: attempt, .agreed(agreed, expires: expires)), at: now).first
        else {
            Issue.record("It is not sent.")
            return
        }
        let content = try BinaryHTTPWriter.request(PayloadVectors.request, content: [])
        var sealer = message.sealer(random: SystemRandom())
        let frame = try sealer.seal(content + Padding.bytes(behind: content.count)) + sealer.finish()

        var reading = ServerMessage(origin: origin)
        let first = reading.take(.bytes(frame))
        guard case .lookUp(let head)? = first.first, names.isOurs(head.session) else {
            Issue.record("It is not looked up: \(first)")
            return
        }
        #expect(reading.take(.opener(try node.opener(head, at: now))) == [.claim(1)])
        try node.claim(1, at: now)
        #expect(reading.take(.claimed) == [.call(PayloadVectors.request)])
        #expect(reading.take(.end) == [.finish])
        let answer = BinaryHTTPWriter.response(PayloadVectors.response, content: [1])
        var replying = node.sealer(replyTo: head, random: SystemRandom())
        let sealed = try replying.seal(answer + Padding.bytes(behind: answer.count)) + replying.finish()
        node.end(at: now)

        var opener = try message.opener(FrameHead(sealed.prefix(FrameHead.length)), to: sealer.head)
        var reader = BinaryHTTPReader(.reply)
        #expect(
            try reader.read(opener.open(sealed.dropFirst(FrameHead.length)))
                == [.response(PayloadVectors.response), .content([1])])
        #expect(session.take(.answer(1, .sealed), at: now) == [.handOver(1)])
    }
}
