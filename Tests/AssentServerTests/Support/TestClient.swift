import AsyncHTTPClient
import NIOCore
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
}
