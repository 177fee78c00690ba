import AssentCore
import AssentPayload
import Crypto
import HTTPTypes
import Testing

@Suite("Payload encryption: the page's vectors")
struct PayloadVectorTests {
    @Test("Both sides get the keys of the page")
    func keys() throws {
        let vectors = try PayloadVectors()
        #expect(try PayloadKey(of: PayloadVectors.key(0x11)).kid == vectors.rows["kid"])
        for secrets in [try PayloadVectors.client(), try PayloadVectors.server()] {
            #expect(secrets.request.withUnsafeBytes { Array($0) } == vectors.bytes("request"))
            #expect(secrets.reply.withUnsafeBytes { Array($0) } == vectors.bytes("reply"))
            #expect(secrets.confirmation == vectors.bytes("confirm"))
        }
    }

    @Test("Content and frames are those of the page, byte for byte, in both directions")
    func frames() throws {
        let vectors = try PayloadVectors()
        let (client, server) = (try PayloadVectors.client(), try PayloadVectors.server())

        let content = try BinaryHTTPWriter.request(PayloadVectors.request, content: [])
        #expect(content == vectors.bytes("request content"))
        let head = PayloadVectors.head(.request, 1, salt: 0x55)
        let padded = content + Padding.bytes(behind: content.count)
        let frame = try client.sealed(head, padded)
        #expect(frame == vectors.bytes("request frame"))
        #expect(try server.opened(frame, as: .request) == padded)

        let answer = BinaryHTTPWriter.response(PayloadVectors.response, content: Array(#"{"a":1}"#.utf8))
        #expect(answer == vectors.bytes("reply content"))
        let replyHead = PayloadVectors.head(.reply, 1, salt: 0x66)
        let reply = try server.sealed(
            replyHead, answer + Padding.bytes(behind: answer.count), bound: head.binding)
        #expect(reply == vectors.bytes("reply frame"))
        #expect(try client.opened(reply, as: .reply, bound: head.binding).starts(with: answer))
    }

    @Test("A message of two chunks is that of the page, in whatever pieces it is sealed", arguments: [1, 4096, 65_537])
    func chunks(piece: Int) throws {
        let vectors = try PayloadVectors()
        var sealer = FrameSealer(
            PayloadVectors.head(.request, 2, salt: 0x55), key: try PayloadVectors.client().request, bound: [])
        var frame: [UInt8] = []
        var left = 65_537
        while left > 0 {
            frame += try sealer.seal([UInt8](repeating: 0xAA, count: min(piece, left)))
            left -= min(piece, left)
        }
        frame += try sealer.finish()
        #expect(frame.count == 65_620)
        #expect(Hex.encode(SHA2.sha256(frame)) == vectors.rows["SHA-256 of the frame of two chunks"])
    }

    @Test("Lengths are padded as the page says")
    func padding() throws {
        let rows = try PayloadVectors().rows.filter { $0.key.hasPrefix("padded length of ") }
        #expect(rows.count == 8)
        for (name, value) in rows {
            let length = try #require(name.split(separator: " ").last.flatMap { Int($0) })
            #expect(Padding.length(of: length) == Int(value), "\(length)")
        }
    }
}
