import AssentCore
import AssentPayload
import Foundation
import HTTPTypes
import TestSupport
import Testing

/// What a peer that has the keys may send, and what somebody without them may do to a handshake.
@Suite("Payload encryption: mutations of Binary HTTP and of handshakes")
struct MutatedContentTests {
    private static let count = Soak.isOn ? 50_000 : 1_000
    private static let post = HTTPRequest(
        method: .post, scheme: "https", authority: "api.bank.example:8443", path: "/transfers?x=1",
        headerFields: [.contentType: "application/json", .acceptLanguage: ""])
    private static let reply = HTTPResponse(status: .notFound, headerFields: [.contentType: "text/plain"])
    private static let content = (0..<90).map { UInt8($0) }

    /// A message of known length and a streamed one, padded.
    private static func messages(_ kind: FrameHead.Kind) throws -> [[UInt8]] {
        let streamed = BinaryHTTPWriter.piece(content) + BinaryHTTPWriter.piece([1]) + BinaryHTTPWriter.end
        let messages: [[UInt8]] =
            kind == .request
            ? [
                try BinaryHTTPWriter.request(post, content: content), try BinaryHTTPWriter.head(post) + streamed,
            ] : [BinaryHTTPWriter.response(reply, content: content), BinaryHTTPWriter.head(reply) + streamed]
        return messages.map { $0 + Padding.bytes(behind: $0.count) }
    }

    /// The parts of a message that comes in pieces, with its content together; `nil` when it is refused as malformed.
    private static func parts(
        _ bytes: [UInt8], _ kind: FrameHead.Kind, piece: Int
    ) throws -> [BinaryHTTPReader.Part]? {
        var reader = BinaryHTTPReader(kind)
        var (parts, content): ([BinaryHTTPReader.Part], [UInt8]) = ([], [])
        func take(_ more: [BinaryHTTPReader.Part]) {
            for part in more {
                if case .content(let bytes) = part { content += bytes } else { parts.append(part) }
            }
        }
        var rest = bytes[...]
        do throws(PayloadError) {
            while !rest.isEmpty {
                take(try reader.read(Array(rest.prefix(piece))))
                rest = rest.dropFirst(piece)
            }
            take(try reader.finish())
        } catch {
            guard case .malformedContent = error else { throw error }
            return nil
        }
        return parts + [.content(content)]
    }

    @Test(
        "36: Mutated Binary HTTP is refused as malformed, or read alike in whatever pieces it comes, as one head",
        arguments: [FrameHead.Kind.request, .reply])
    func content(kind: FrameHead.Kind) throws {
        let messages = try Self.messages(kind)
        let head: BinaryHTTPReader.Part = kind == .request ? .request(Self.post) : .response(Self.reply)
        var faults: [String] = []
        var (read, refused) = (0, 0)
        for (message, other) in zip(messages, messages.reversed()) {
            let whole = try #require(try Self.parts(message, kind, piece: .max))
            #expect(whole.first == head && whole.count == 2)
            var mutator = Mutator(seed: message.count, places: [0, 1, 5, 11, 33, 50, 80], other: other)
            for number in 0..<Self.count {
                let changed = mutator.mutated(message)
                // A head may come in 64 pieces.
                let piece = changed.count / 60 + 1 + mutator.below(60)
                let whole = try Self.parts(changed, kind, piece: .max)
                if try Self.parts(changed, kind, piece: piece) != whole { faults.append("\(number) in \(piece)") }
                if let whole, whole.count != 2 { faults.append("\(number): \(whole.count) parts") }
                if whole == nil { refused += 1 } else { read += 1 }
            }
        }
        #expect(faults.isEmpty, "\(faults.prefix(5))")
        // Both happen, or the changes are too small or too large to show something.
        #expect(read > Self.count / 100 && refused > Self.count / 100, "\(read), \(refused)")
    }

    @Test("36: A client goes on with no mutated answer to its handshake but one that only shortens its session's life")
    func answers() throws {
        let key = try PayloadVectors.key(0x11)
        let client = try ClientHandshake(
            PayloadVectors.peer, serverKey: PayloadKey(of: key), random: Repeating(byte: 0x22))
        func answer(_ body: [UInt8], session: UInt8) throws -> [UInt8] {
            try ServerHandshake(
                HandshakeRequest(body: body), keys: [ServerPayloadKey(key, notAfter: .distantFuture)], now: .now
            ).finish(
                prover: PayloadVectors.peer.client, origin: PayloadVectors.peer.origin,
                session: [UInt8](repeating: session, count: 16), random: SystemRandom()
            ).reply.body
        }
        let body = client.request.body
        let honest = try answer(body, session: 0x44)
        let agreed = try client.finish(honest)
        let other = try answer(
            ClientHandshake(PayloadVectors.peer, serverKey: PayloadKey(of: key), random: Repeating(byte: 0x23))
                .request.body, session: 0x45)
        var mutator = Mutator(seed: 4, places: [0, 7, 40, 90, 140], other: other)
        for number in 0..<Self.count {
            let changed = mutator.mutated(honest)
            guard changed != honest, let finished = try? client.finish(changed) else { continue }
            #expect(finished.secrets.confirmation == agreed.secrets.confirmation, "\(number)")
            #expect(finished.secrets.session == agreed.secrets.session, "\(number)")
            #expect(1...agreed.expires ~= finished.expires, "\(number)")
        }
        // What the server answers to a request that was changed on the way confirms nothing to its client.
        mutator = Mutator(seed: 5, places: [0, 7, 30, 90, 150], other: body)
        var confirmed = 0
        for number in 0..<Self.count {
            let changed = mutator.mutated(body)
            guard changed != body, let read = try? HandshakeRequest(body: changed),
                let answered = try? answer(changed, session: 0x44), let finished = try? client.finish(answered)
            else { continue }
            confirmed += 1
            // The same members, however they are written.
            #expect(read.kid == client.request.kid && read.ephemeral == client.request.ephemeral, "\(number)")
            #expect(read.peer(at: PayloadVectors.peer.origin) == PayloadVectors.peer, "\(number)")
            #expect(finished.secrets.session == [UInt8](repeating: 0x44, count: 16))
        }
        #expect(confirmed < Self.count / 4, "\(confirmed)")
    }
}
