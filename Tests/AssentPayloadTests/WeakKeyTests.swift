import AssentCore
import AssentPayload
import Foundation
import TestSupport
import Testing

/// Whoever sends such a key knows what it agrees on with any other: nothing.
@Suite("Payload encryption: public keys of small order")
struct WeakKeyTests {
    /// The seven that X25519 has, of which two are written as no other key may be; each also with the bit that is not
    /// read (RFC 7748 §5).
    static let keys: [[UInt8]] = {
        let (zeros, ones) = (String(repeating: "00", count: 31), String(repeating: "ff", count: 30))
        let texts: [String] = [
            "00\(zeros)", "01\(zeros)", "ec\(ones)7f", "ed\(ones)7f", "ee\(ones)7f",
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        ]
        let written = texts.compactMap { Hex.decode($0) }
        let unread = written.map { key in
            var key = key
            key[31] |= 0x80
            return key
        }
        return written + unread
    }()

    @Test("36: Each of them is refused by the server, and by the client in the place of each of the server's two keys")
    func refused() throws {
        let good = try PayloadKey(of: PayloadVectors.key(0x33))
        #expect(Self.keys.count == 14 && Set(Self.keys).count == 14)
        let staticKey = try ServerPayloadKey(PayloadVectors.key(0x11), notAfter: .distantFuture)
        for bytes in Self.keys {
            let weak = try PayloadKey(bytes)
            #expect(throws: PayloadError.badKey, "\(Hex.encode(bytes))") {
                try PayloadSecrets(
                    peer: PayloadVectors.peer, staticKey: staticKey, ephemeral: PayloadVectors.key(0x33),
                    clientEphemeral: weak, session: PayloadVectors.session)
            }
            for (serverKey, serverEphemeral) in [(weak, good), (good, weak)] {
                #expect(throws: PayloadError.badKey, "\(Hex.encode(bytes))") {
                    try PayloadSecrets(
                        peer: PayloadVectors.peer, ephemeral: PayloadVectors.key(0x22), serverKey: serverKey,
                        serverEphemeral: serverEphemeral, session: PayloadVectors.session)
                }
            }
        }
        // The control: a good key is none of them, also with that bit.
        var bytes = good.bytes
        bytes[31] |= 0x80
        let same = try PayloadKey(bytes)
        #expect(try same.agree(with: PayloadVectors.key(0x22)) == good.agree(with: PayloadVectors.key(0x22)))
    }

    @Test("36: A handshake with one of them gets pe_malformed, and its answer nothing of a call")
    func handshakes() throws {
        let serverKey = try PayloadKey(of: PayloadVectors.key(0x11))
        let keys = [ServerPayloadKey(try PayloadVectors.key(0x11), notAfter: .distantFuture)]
        let client = try ClientHandshake(PayloadVectors.peer, serverKey: serverKey, random: SystemRandom())
        let answer = try ServerHandshake(HandshakeRequest(body: client.request.body), keys: keys, now: .now).finish(
            prover: "i-1", origin: PayloadVectors.peer.origin, session: PayloadVectors.session,
            random: SystemRandom()
        ).reply
        let text = String(decoding: answer.body, as: UTF8.self)
        for bytes in Self.keys {
            let request = try HandshakeRequest(
                PayloadVectors.peer, kid: serverKey.kid, ephemeral: try PayloadKey(bytes))
            #expect(throws: PayloadRefusal.malformed, "\(Hex.encode(bytes))") {
                try ServerHandshake(HandshakeRequest(body: request.body), keys: keys, now: .now).finish(
                    prover: "i-1", origin: PayloadVectors.peer.origin, session: PayloadVectors.session,
                    random: SystemRandom())
            }
            let changed = text.replacing(Base64URL.encode(answer.ephemeral.bytes), with: Base64URL.encode(bytes))
            #expect(throws: PayloadError.badKey, "\(Hex.encode(bytes))") { try client.finish(Array(changed.utf8)) }
        }
        #expect(throws: Never.self) { try client.finish(answer.body) }
    }
}
