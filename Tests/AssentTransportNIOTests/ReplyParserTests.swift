import AssentCore
import HTTPTypes
import NIOCore
import Testing
@testable import AssentTransportNIO

@Suite("The reply parser gives the same for every way in which bytes may arrive")
struct ReplyParserTests {
    private static let limits = ReplyParser.Limits(headerBytes: 4096, headerFields: 64)

    private func read(_ pieces: [[UInt8]]) throws -> (status: Int?, content: [UInt8], isComplete: Bool) {
        var parser = ReplyParser(limits: Self.limits, isHEAD: false)
        var input = ByteBuffer()
        var status: Int?
        var content: [UInt8] = []
        for piece in pieces {
            input.writeBytes(piece)
            loop: while true {
                switch try parser.next(&input) {
                case .needsMore: break loop
                case .head(let response): status = response.status.code
                case .content(let slice): content += slice.readableBytesView
                case .end: return (status, content, true)
                }
            }
        }
        return (status, content, false)
    }

    static let reply = Array(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\"y\"\r\nhello\r\n7\r\n, world\r\n0\r\nT: u\r\n\r\n"
            .utf8)

    @Test("Cut in two at every place, and byte by byte")
    func everyCut() throws {
        for cut in 0...Self.reply.count {
            let read = try read([Array(Self.reply[..<cut]), Array(Self.reply[cut...])])
            #expect(read.status == 200)
            #expect(String(decoding: read.content, as: UTF8.self) == "hello, world")
            #expect(read.isComplete)
        }
        #expect(try read(Self.reply.map { [$0] }).isComplete)
    }

    @Test("No prefix is complete")
    func everyPrefix() throws {
        for cut in 0..<Self.reply.count {
            #expect(try !read([Array(Self.reply[..<cut])]).isComplete)
        }
    }

    @Test("No change of a byte traps, and none makes the parser read beyond")
    func everyChange() {
        for index in Self.reply.indices {
            for byte: UInt8 in [0, 9, 10, 13, 32, 0x2c, 0x30, 0x3a, 0x3b, 0x46, 0x7f, 0x80, 0xff] {
                var changed = Self.reply
                changed[index] = byte
                let whole = try? read([changed])
                let split = try? read(changed.map { [$0] })
                #expect(whole?.isComplete == split?.isComplete)
                #expect(whole?.content == split?.content)
            }
        }
    }
}
