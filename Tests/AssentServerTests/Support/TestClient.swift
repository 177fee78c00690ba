import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOSSL
import TestSupport

extension HTTPClient {
    /// A client for a server of a test, with so many connections at once.
    ///
    /// Whom to trust is the subject of the transport's tests: BoringSSL's own verifier knows no name constraints for
    /// addresses, which the generated CA has. A busy machine may take long until a connection is there.
    static func forTests(connections: Int, repeats: Bool = true) -> HTTPClient {
        var settings = HTTPClient.Configuration(
            redirectConfiguration: .disallow, timeout: .init(connect: .seconds(Int64(Patience.seconds))),
            decompression: .disabled)
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        settings.tlsConfiguration = tls
        settings.httpVersion = .http1Only
        settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connections
        settings.connectionPool.retryConnectionEstablishment = repeats
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: settings)
    }

    /// The whole reply to a request.
    func answer(
        _ method: String, _ url: String, _ fields: [(String, String)] = [], body: [UInt8]? = nil
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: url)
        request.method = HTTPMethod(rawValue: method)
        for (name, value) in fields { request.headers.add(name: name, value: value) }
        if let body { request.body = .bytes(ByteBuffer(bytes: body)) }
        let reply = try await execute(request, timeout: .seconds(Int64(Patience.seconds)))
        let bytes = try await reply.body.collect(upTo: 8 << 20)
        return Answer(status: Int(reply.status.code), fields: reply.headers, bytes: Array(bytes.readableBytesView))
    }
}
