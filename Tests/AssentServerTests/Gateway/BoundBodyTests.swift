import HTTPTypes
import Hummingbird
import NIOCore
import Testing

@testable import AssentServer

@Suite("Content that a policy may bind")
struct BoundBodyTests {
    @Test(
        "A request without content is read before the engine asks, unless it has fields that no approved one may have",
        arguments: [
            ([:], true), ([.contentType: "application/json"], true), ([.contentType: "text/plain"], false),
            ([.contentEncoding: "gzip"], false), ([.contentRange: "bytes 0-0/9"], false),
        ] as [(HTTPFields, Bool)])
    func withoutContent(fields: HTTPFields, isShort: Bool) {
        let request = Request(
            head: .init(method: .put, scheme: "https", authority: "localhost", path: "/", headerFields: fields),
            body: RequestBody(buffer: ByteBuffer()))
        #expect(BoundBodyReader(request, mediaType: "application/json", limit: 100).isShort == isShort)
    }

    @Test("Content of a known length is read so if it fits, and its type is the one that can be bound")
    func withContent() {
        let cases: [(HTTPFields, Bool)] = [
            ([.contentLength: "2", .contentType: "application/json"], true),
            ([.contentLength: "101", .contentType: "application/json"], false),
            ([.contentLength: "2"], false), ([.contentLength: "2", .contentType: "text/plain"], false),
            ([.contentLength: "2", .contentType: "application/json", .contentRange: "bytes 0-1/9"], false),
            ([.transferEncoding: "chunked", .contentType: "application/json"], false),
        ]
        for (fields, isShort) in cases {
            let request = Request(
                head: .init(method: .put, scheme: "https", authority: "localhost", path: "/", headerFields: fields),
                body: RequestBody(buffer: ByteBuffer(string: "{}")))
            #expect(
                BoundBodyReader(request, mediaType: "application/json", limit: 100).isShort == isShort, "\(fields)")
        }
    }
}
